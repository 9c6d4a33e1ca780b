"""Models behind an endpoint: queried over HTTP, never opened.

:class:`Endpoint` says where the model is and how it is asked (``settings``); ``protocols`` has the forms of requests
and answers, ``transport`` brings one request through time-outs, rate limits and broken answers, ``kept`` stores what
was answered, ``asking`` sends each different row once, and ``model`` makes of all this a model with the access that it
really gives.
"""

from leakgauge.models.endpoints.model import RemoteModel, open_endpoint
from leakgauge.models.endpoints.settings import Endpoint, EndpointOutputs, Layout, Protocol

__all__ = ["Endpoint", "EndpointOutputs", "Layout", "Protocol", "RemoteModel", "open_endpoint"]
