"""What all endpoints share: problems, strict input, pages of results, sign-in by token, throttles, the OpenAPI document.

Imports nothing of the apps. An endpoint is an `ApiView` of an app: it parses, calls a service or selector, renders.
"""
