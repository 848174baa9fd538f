"""The guards that can be taken out one at a time, and the tests that should miss them; by layer."""

from tests.guards.channels import CHANNELS
from tests.guards.conditions import CONDITIONS
from tests.guards.dispenser import DISPENSERS
from tests.guards.elections import ELECTIONS
from tests.guards.health_checks import HEALTH_CHECKS
from tests.guards.leases import LEASES
from tests.guards.locks import LOCKS
from tests.guards.mutation import VERBS, Mutation
from tests.guards.queue_plans import QUEUE_PLANS
from tests.guards.queues import QUEUES
from tests.guards.records import RECORDS
from tests.guards.resources import RESOURCES
from tests.guards.rest import REST
from tests.guards.rwlock import READ_WRITE_LOCKS
from tests.guards.semaphores import SEMAPHORES
from tests.guards.servers import QUEUE_SERVERS
from tests.guards.streams import STREAMS
from tests.guards.submission import SUBMISSION
from tests.guards.surfaces import SURFACES
from tests.guards.timers import TIMERS
from tests.guards.waiting import WAITING

MUTATIONS = (
    *LEASES,
    *WAITING,
    *RESOURCES,
    *HEALTH_CHECKS,
    *RECORDS,
    *SURFACES,
    *REST,
    *QUEUE_PLANS,
    *QUEUES,
    *QUEUE_SERVERS,
    *ELECTIONS,
    *STREAMS,
    *SUBMISSION,
    *TIMERS,
    *DISPENSERS,
    *LOCKS,
    *READ_WRITE_LOCKS,
    *SEMAPHORES,
    *CONDITIONS,
    *CHANNELS,
)

__all__ = ["MUTATIONS", "VERBS", "Mutation"]
