from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Records"  # beside runs: their lines and calls, decisions, the audit
