"""The commands in Chinese, if the project's LANGUAGE_CODE is Chinese; --json is always English."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandParser
from django.utils import translation
from django.utils.translation import trans_real

from resourcepool.models import Job, Proxy
from tests.admin.conftest import event, lease
from tests.management.command_runner import run
from tests.spawned import ROOT

CHINESE = re.compile("[一-鿿]")
COMMANDS = sorted(
    path.stem for path in (Path(ROOT) / "resourcepool").glob("**/management/commands/resourcepool_*.py")
)


@pytest.fixture
def chinese(settings: Any) -> Iterator[None]:
    """A project in Chinese, without an activated language, as in a shell."""
    settings.LANGUAGE_CODE = "zh-hans"
    trans_real._default = None  # Django caches the setting
    with translation.override(None):
        translation.deactivate()
        yield
    trans_real._default = None


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_in_the_language_of_the_project(name: str, chinese: None) -> None:
    parser = parser_of(name)
    assert CHINESE.search(parser.description or "")
    usual = {action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions}
    ours = {action.dest: action.help or "" for action in parser._actions if action.dest not in usual}
    assert not [name for name, help_text in ours.items() if not CHINESE.search(help_text)]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_in_english_without_the_setting(name: str) -> None:
    assert not CHINESE.search(parser_of(name).format_help())


def parser_of(name: str) -> CommandParser:
    return load_command_class(get_commands()[name], name).create_parser("manage.py", name)


def test_status_and_why(committed: None, chinese: None) -> None:
    proxy = Proxy.objects.create(host="a.example", port=80)
    lease(proxy)
    event(proxy, ago=600, host="web1", pid=41)
    status = run("status", "proxy").out
    assert "资源池" in status
    assert "剩余时间" in status
    assert "已租用，直到持有者归还" in run("why", proxy.pk).out
    assert "没有名为 'nobody' 的" in run("why", "nobody").err


def test_close_drain_and_what_is_refused(committed: None, chinese: None) -> None:
    proxy = Proxy.objects.create(host="a.example", port=80)
    lease(proxy)
    assert "已收回租约：代理 http://a.example:80。" in run("close", "proxy", proxy.pk, "--reason", "x").out
    assert "已停用：代理 http://a.example:80。" in run("drain", "proxy", proxy.pk, "--reason", "x").out
    assert "--reason：必填，一行文本，1 到 200 个字符" in run("drain", "proxy", proxy.pk, "--reason", "").err
    assert "不允许 pool='nix'：应为以下之一：" in run("drain", "nix", 1, "--reason", "x").err


def test_import(committed: None, chinese: None, tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("host,port\na.example,80\n")
    assert "已导入 1 个代理：新增 1 个" in run("import", file).out
    file.write_text("host,port\na.example,\n")
    assert "第 2 行：port：缺失" in run("import", file).err


def test_sweep(committed: None, chinese: None) -> None:
    done = run("sweep").out
    assert re.match("清扫: 0 个已恢复服务，0 个租约已过期，其中 0 个已被其他持有者获取，[0-9]+ 个告警；", done)
    assert "testapp.Ghost：数据库 'default'：" in done
    assert "returned to service" in Job.objects.get(pk="sweep").result


def test_alarms_are_logged_in_english(committed: None, chinese: None, caplog: pytest.LogCaptureFixture) -> None:
    run("sweep")
    assert "testapp.Ghost: cannot be read" in caplog.text
    assert not CHINESE.search(caplog.text)


@pytest.mark.parametrize(
    "words", [("status",), ("why", "1"), ("drain", "proxy", "1", "--reason", "x", "--dry-run")]
)
def test_programs_are_answered_in_english(committed: None, chinese: None, words: tuple[str, ...]) -> None:
    Proxy.objects.create(pk=1, host="a.example", port=80)
    ran = run(*words, "--json")
    assert ran.code == 0
    assert not CHINESE.search(ran.all)
    assert ran.json


def test_csv_is_in_english(committed: None, chinese: None) -> None:
    Proxy.objects.create(host="a.example", port=80)
    assert not CHINESE.search(run("export", "proxy").out)


def test_a_shell_needs_nothing_but_the_setting(database_url: str) -> None:
    environment = {**os.environ, "LANGUAGE_CODE": "zh-hans", "LC_ALL": "C.UTF-8", "DATABASE_URL": database_url}
    command = [sys.executable, "manage.py", "resourcepool_status", "--help"]
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "显示资源池" in shown.stdout
