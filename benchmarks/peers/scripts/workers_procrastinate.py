"""procrastinate on PostgreSQL: eight workers; moments by schedule_at."""

import datetime

from with_procrastinate import prepare, submit_many, task, work
from worker_peer import Workers


def schedule(key: str, seconds: float) -> None:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    task.configure(schedule_at=moment).defer(key=key)


if __name__ == "__main__":
    Workers(prepare=prepare, submit_many=submit_many, schedule=schedule, work=work, is_process_each=True).main()
