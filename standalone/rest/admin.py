"""/ and /health: what this worker is and how it is."""

from starlette.routing import Route

from standalone.rest.server import answer


def routes(herder, worker):
    def root(request):
        return answer(worker.about())

    def health(request):
        if worker.starting:
            return answer({"status": "starting", "message": "Worker is still starting up."}, 503)
        return answer({"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."})

    return [Route("/", root), Route("/health", health)]
