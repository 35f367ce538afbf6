"""A local host: runs an Azure Functions app (Python v2 model) on this machine, against Azurite.

It stands in for `func start` where the Functions Core Tools are not installed. The app knows nothing of it.
"""
