"""The relay, the key, and the programs that ask."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

from .box import Box, Untried, said


def key(box: Box) -> list[str]:
    """What the host compares with its keys: everything a program in here could have read."""
    seen = [json.dumps(dict(os.environ))]
    for number in os.listdir("/proc"):
        if number.isdigit():
            for name in ("environ", "cmdline"):
                try:
                    seen.append(open(f"/proc/{number}/{name}", errors="replace").read(100_000))
                except OSError:
                    continue
    for folder, _, found in os.walk("/run"):
        for name in found:
            try:
                seen.append(open(os.path.join(folder, name), errors="replace").read(100_000))
            except OSError:
                continue
    box.extra["key"] = {"seen": "\n".join(seen)[:1_000_000]}
    return []


def call(path: str, body: dict[str, Any], token: str) -> Any:
    request = urllib.request.Request(
        os.environ["RELAY_URL"] + path, data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {token}"},
    )  # fmt: skip
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20)


def need_relay() -> None:
    if not os.environ.get("RELAY_URL"):
        raise Untried("this box has no relay")


ASKED = {"model": "boundary", "messages": [{"role": "user", "content": "hello"}]}


def base_url(box: Box) -> list[str]:
    need_relay()
    address = os.environ["RELAY_URL"]
    if not address.startswith("http://127.0.0.1:"):
        return [f"the model's address is {address}, not the relay's"]
    for token in ("", "wrong"):
        try:
            call("/chat/completions", ASKED, token)
            return ["the relay serves whoever has no token"]
        except urllib.error.HTTPError as exc:
            if exc.code != 401:
                return [f"the relay answers {exc.code} to whoever has no token"]
    return []


def allowed_call(box: Box) -> list[str]:
    need_relay()
    try:
        with call("/chat/completions", ASKED, os.environ["RELAY_TOKEN"]) as answer:
            heard = answer.read(100_000).decode("utf-8", "replace")
    except OSError as exc:
        return [f"an allowed call does not arrive: {exc}"]
    return [] if box.order["nonce"] in heard else ["an allowed call has another's answer"]


def streaming(box: Box) -> list[str]:
    need_relay()
    times, heard = [], b""
    try:
        with call(
            "/chat/completions", dict(ASKED, stream=True), os.environ["RELAY_TOKEN"]
        ) as answer:
            while True:
                piece = answer.read1(65536)
                if not piece:
                    break
                times.append(time.monotonic())
                heard += piece
    except OSError as exc:
        return [f"a streamed call does not arrive: {exc}"]
    reached = []
    if len(times) < 2 or times[-1] - times[0] < box.order["stream_s"] / 2:
        reached.append("a streamed answer arrives in one piece")
    if hashlib.sha256(heard).hexdigest() != box.order["stream_sha256"]:
        reached.append("a streamed answer arrives with other bytes than were sent")
    return reached


def agent(box: Box) -> list[str]:
    command = box.order["agent"]
    if not command:
        raise Untried("the image says no command of an agent's")
    try:
        done = said(*command, "--version", timeout=60)
    except (Untried, OSError, subprocess.TimeoutExpired) as exc:
        return [f"{command[0]} does not start: {exc}"]
    first = (done.stdout.strip().splitlines() or [""])[0][:80]
    box.extra["agent"] = {"version": first}
    return [] if done.returncode == 0 and first else [f"{command[0]} --version says {first!r}"]


def browser(box: Box) -> list[str]:
    """One in the box itself: it answers there, and reaches no more than the box does."""
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    command = next(filter(None, found), None)
    if command is None:
        raise Untried("the image holds no browser")
    going = subprocess.Popen(
        [command, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=9222",
         f"--user-data-dir=/tmp/boundary-browser-{box.order['nonce']}", "about:blank"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                version = json.load(opener.open("http://127.0.0.1:9222/json/version", timeout=2))
                box.extra["browser"] = {"version": str(version.get("Browser"))[:80]}
                return []
            except (OSError, ValueError):
                time.sleep(0.2)
        return ["the browser in the image does not answer at its debugging port"]
    finally:
        going.kill()
        going.wait()


def browser_reach(box: Box) -> list[str]:
    command = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if command is None:
        raise Untried("the image holds no browser")
    reached = []
    for address in box.order["hosts"][:4]:
        url = f"http://{address}:{box.order['port']}/browser-{box.order['nonce']}"
        try:
            done = said(
                command,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
                f"--user-data-dir=/tmp/boundary-browser-{box.order['nonce']}-2",
                url,
                timeout=30,
            )
        except subprocess.TimeoutExpired:
            continue
        if box.order["nonce"] in done.stdout.replace(url, ""):
            reached.append(f"the browser shows {url}")
    return reached
