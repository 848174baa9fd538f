import secrets

_a = secrets.token_hex(10)


def address() -> str:
    return _a


def are_on() -> bool:
    return False


def send(address: str) -> None: ...
def listen(wake: object) -> None: ...
