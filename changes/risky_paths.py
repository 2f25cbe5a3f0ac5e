"""Which paths run by themselves, decide what runs, or hold what nobody should see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from changes.flag import Flag, Severity
from changes.globs import compiled
from changes.names import folded

_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist", "*.example.*", "*.sample.*")


@dataclass(frozen=True, slots=True)
class _Kind:
    category: str
    severity: Severity
    reason: str
    patterns: str  # globs as changes.globs takes them, between white space
    words: str = ""  # whole words of a name: `use_auth.py`, `UseAuth.tsx`, not `author.md`
    but: tuple[str, ...] = ()


_KINDS = (
    _Kind(
        "ci/workflow",
        "high",
        "it runs on the project's own machines, with the project's keys",
        """
        **/.github/workflows/ **/.github/actions/ action.yml action.yaml dependabot.yml
        dependabot.yaml renovate.json renovate.json5 .renovaterc .renovaterc.json CODEOWNERS
        **/.circleci/ .gitlab-ci.yml *.gitlab-ci.yml **/.gitlab/ci/ Jenkinsfile Jenkinsfile.*
        .travis.yml azure-pipelines*.yml azure-pipelines*.yaml **/.azure-pipelines/
        bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker.yaml **/.woodpecker/
        **/.buildkite/ appveyor.yml .appveyor.yml cloudbuild.yml cloudbuild.yaml buildspec.yml
        **/.forgejo/workflows/ **/.gitea/workflows/ .cirrus.yml **/.tekton/ **/.semaphore/
        """,
    ),
    _Kind(
        "agent-config",
        "high",
        "coding agents on your own machine obey it, or run what it names",
        """
        **/.claude/ CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md AGENT.md GEMINI.md
        **/.gemini/ **/.codex/ **/.cursor/ .cursorrules .cursorignore .windsurfrules **/.windsurf/
        .mcp.json mcp.json **/.github/copilot-instructions.md **/.github/instructions/
        **/.github/prompts/ **/.github/agents/ .aider.conf.yml .aiderignore
        **/.opencode/ opencode.json opencode.jsonc **/.hermes/ **/.hax/ **/.pi/ **/.continue/
        **/.roo/ .roomodes .clinerules **/.clinerules/ .goosehints **/.goose/ **/.junie/ **/.kiro/
        **/.amazonq/ **/.agents/ **/.qwen/ QWEN.md SKILL.md
        """,
    ),
    _Kind(
        "hooks",
        "high",
        "git, or a tool beside it, runs it on the machine of whoever commits or checks out",
        """
        **/.husky/ .huskyrc .huskyrc.* **/.githooks/ **/.git-hooks/ **/githooks/
        .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml lefthook.yml
        lefthook.yaml lefthook.toml
        .lefthook.yml **/.lefthook/ .overcommit.yml .lintstagedrc .lintstagedrc.*
        lint-staged.config.* pre-commit post-commit pre-push post-checkout post-merge
        post-rewrite commit-msg
        prepare-commit-msg pre-rebase post-receive pre-receive applypatch-msg
        """,
    ),
    _Kind(
        "editor",
        "high",
        "an editor runs or obeys it when the directory is opened",
        """
        **/.vscode/ **/.idea/ **/.devcontainer/ .devcontainer.json **/.zed/ **/.fleet/ **/.vs/
        .vimrc .exrc .nvimrc .nvim.lua .lvimrc .dir-locals.el *.code-workspace *.sublime-project
        """,
    ),
    _Kind(
        "environment",
        "high",
        "a shell or tool manager runs it when the directory is entered",
        """
        .envrc .autoenv .autoenv.zsh mise.toml .mise.toml mise.*.toml .mise.*.toml **/.mise/
        .tool-versions .rtx.toml flake.nix shell.nix default.nix devenv.nix devbox.json
        .nvmrc .node-version .python-version .ruby-version .sdkmanrc rust-toolchain
        rust-toolchain.toml .gdbinit .lldbinit
        """,
    ),
    _Kind(
        "git-config",
        "high",
        "it decides what git fetches, converts or hides",
        ".gitmodules .gitattributes .lfsconfig .gitconfig .git-blame-ignore-revs",
    ),
    _Kind(
        "build",
        "high",
        "Python runs it at each start",
        "sitecustomize.py usercustomize.py *.pth *.egg-link",
    ),
    _Kind(
        "build",
        "medium",
        "it decides what runs when the project is built",
        """
        Makefile Makefile.* GNUmakefile *.mk CMakeLists.txt *.cmake CMakePresets.json setup.py
        setup.cfg hatch_build.py build.gradle build.gradle.kts settings.gradle settings.gradle.kts
        gradle.properties gradlew gradlew.bat **/gradle/wrapper/ init.gradle pom.xml **/.mvn/ mvnw
        mvnw.cmd build.xml build.rs **/.cargo/ *.bazel BUILD WORKSPACE .bazelrc *.bzl Justfile
        .justfile Taskfile.yml Taskfile.yaml Rakefile *.rake noxfile.py fabfile.py dodo.py
        webpack.config.* vite.config.* rollup.config.* esbuild.config.* babel.config.* .babelrc
        .babelrc.* next.config.* postcss.config.* eslint.config.* .eslintrc .eslintrc.*
        .prettierrc.js .prettierrc.cjs gulpfile.* Gruntfile.* binding.gyp meson.build configure
        configure.ac Makefile.am *.gemspec .yarnrc .yarnrc.yml .pnpmfile.cjs **/.yarn/plugins/
        **/.yarn/releases/ *.csproj *.vbproj *.fsproj *.vcxproj *.sln Directory.Build.props
        Directory.Build.targets nuget.config pip.conf SConstruct wscript *.nix build.zig *.podspec
        """,
    ),
    _Kind(
        "test-config",
        "medium",
        "it decides which tests run, and what passes",
        """
        conftest.py pytest.ini .pytest.ini tox.ini jest.config.* vitest.config.* vitest.workspace.*
        karma.conf.* playwright.config.* cypress.config.* .mocharc .mocharc.* phpunit.xml
        phpunit.xml.dist .rspec .coveragerc codecov.yml .codecov.yml .nycrc .nycrc.* ava.config.*
        """,
    ),
    _Kind(
        "deploy",
        "medium",
        "it decides what is deployed, and how",
        """
        Dockerfile Dockerfile.* *.Dockerfile Containerfile Containerfile.* docker-compose*.yml
        docker-compose*.yaml compose.yml compose.yaml compose.*.yml compose.*.yaml docker-bake.*
        *.tf *.tf.json *.hcl Procfile fly.toml vercel.json netlify.toml serverless.yml
        serverless.yaml **/k8s/ **/kubernetes/ **/helm/ **/deploy/ **/ansible/ Chart.yaml
        kustomization.yml kustomization.yaml Vagrantfile *.bicep wrangler.toml wrangler.jsonc
        render.yaml skaffold.yaml Pulumi.yaml Pulumi.*.yaml cdk.json *.service nginx.conf
        """,
    ),
    _Kind(
        "dependency",
        "medium",
        "it decides whose code is installed",
        """
        requirements*.txt requirements*.in **/requirements/*.txt constraints*.txt pyproject.toml
        poetry.lock uv.lock uv.toml Pipfile Pipfile.lock pdm.lock pylock.toml pylock.*.toml
        environment.yml environment.yaml conda-lock.yml pixi.toml pixi.lock package.json
        package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock
        bun.lockb deno.json deno.jsonc deno.lock Cargo.toml Cargo.lock go.mod go.sum go.work
        go.work.sum Gemfile Gemfile.lock gems.rb gems.locked composer.json composer.lock mix.exs
        mix.lock pubspec.yaml pubspec.lock Package.swift Package.resolved Podfile Podfile.lock
        Cartfile flake.lock packages.lock.json packages.config gradle.lockfile libs.versions.toml
        build.gradle build.gradle.kts pom.xml .terraform.lock.hcl **/vendor/ **/node_modules/
        """,
    ),
    _Kind(
        "secret",
        "high",
        "files of this name hold keys or passwords",
        """
        .env .env.* *.env .npmrc .pypirc .netrc _netrc id_rsa* id_ed25519* id_ecdsa* id_dsa* *.pem
        *.p8 *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk kubeconfig kubeconfig.* *.kubeconfig
        **/.kube/config *.tfvars *.tfvars.json *.tfstate *.tfstate.* .dockercfg
        **/.docker/config.json .htpasswd .git-credentials .pgpass .my.cnf **/.aws/ **/.ssh/
        **/.gnupg/ service-account*.json service_account*.json *.ovpn .vault-token .boto .s3cfg
        """,
        but=_EXAMPLES,
    ),
    _Kind(
        "secret",
        "medium",
        "its name says that it is about secrets",
        "",
        words="secrets? credentials?",
        but=_EXAMPLES,
    ),
    _Kind(
        "auth",
        "medium",
        "its name says that it decides who may do what",
        "",
        words="""
        auth authn authz authenti[a-z]* authori[sz][a-z]* unauthori[sz]ed oauth
        logins? logout signin sessions? permissions? rbac acls? sso saml jwt oidc middlewares?
        passwords? csrf cors
        """,
    ),
    _Kind(
        "crypto",
        "medium",
        "its name says that it encrypts, signs or checks",
        "**/pki/",
        words="crypto cryptography ciphers? encrypt[a-z]* decrypt[a-z]* hmac tls ssl signing",
    ),
    _Kind(
        "migration",
        "medium",
        "it changes a database's structure or content",
        """
        **/migrations/ **/migrate/ **/alembic/versions/ schema.prisma schema.rb structure.sql
        **/flyway/ **/liquibase/
        """,
    ),
)  # fmt: skip
# `monkey.key` is a name like any other; `server.key` is not
_KEY_FILE = _Kind("secret", "high", "files of this name hold private keys", "", words="""
    server client private priv tls ssl ca root host signing sign master deploy key cert www https?
    localhost domain rsa ec ecdsa ed dsa ssh id
""")  # fmt: skip

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def flags_of(path: bytes) -> Iterator[Flag]:
    """What a path says by itself, whether it is new, changed or gone; once for each category."""
    text = folded(path)
    words = _words(path)
    seen: set[str] = set()
    for kind in _KINDS:
        if kind.category not in seen and _is(kind, text, words):
            seen.add(kind.category)
            yield Flag(kind.category, kind.severity, path, 0, kind.reason)
    if text.endswith(".key") and "secret" not in seen and _any_word(_KEY_FILE, words):
        yield Flag(_KEY_FILE.category, _KEY_FILE.severity, path, 0, _KEY_FILE.reason)


def _is(kind: _Kind, text: str, words: frozenset[str]) -> bool:
    if not (_table(kind.patterns).names(text) or _any_word(kind, words)):
        return False
    return not any(compiled(pattern).fullmatch(text) for pattern in kind.but)


def _any_word(kind: _Kind, words: frozenset[str]) -> bool:
    return bool(kind.words) and any(_choice(kind.words).fullmatch(word) for word in words)


def _words(path: bytes) -> frozenset[str]:
    """The words of every name on the way, without those that end a file's name."""
    names = os.fsdecode(path).split("/")
    names[-1] = names[-1].rpartition(".")[0] or names[-1]
    found = (word for name in names for word in _WORD.findall(name))
    return frozenset(word.casefold() for word in found)


@dataclass(frozen=True, slots=True)
class _Table:
    """Globs made ready for many paths: most need no pattern to be tried."""

    plain: frozenset[str]  # names at any depth
    names_like: re.Pattern[str]
    below: tuple[str, ...]  # directories at any depth, as "/name/"
    others: re.Pattern[str]

    def names(self, text: str) -> bool:
        name = text.rpartition("/")[2]
        if name in self.plain or self.names_like.fullmatch(name):
            return True
        rooted = f"/{text}"
        return any(each in rooted for each in self.below) or bool(self.others.fullmatch(text))


@cache
def _table(globs: str) -> _Table:
    plain, names_like, below, others = [], [], [], []
    for each in globs.split():
        if each.startswith("**/") and each.endswith("/"):
            below.append(folded(each[2:].encode()))
        elif "/" in each:
            others.append(compiled(each).pattern)
        elif "*" in each:
            names_like.append(compiled(f"/{each}").pattern)
        else:
            plain.append(folded(each.encode()))
    never = "(?!)"
    return _Table(
        plain=frozenset(plain),
        names_like=re.compile("|".join(names_like) or never, re.DOTALL),
        below=tuple(below),
        others=re.compile("|".join(others) or never, re.DOTALL),
    )


@cache
def _choice(words: str) -> re.Pattern[str]:
    return re.compile("|".join(words.split()))
