# Has discord.py look for the platform at PLATFORM. Python imports this module by its name at every start.
import os

if "PLATFORM" in os.environ:
    import discord
    import yarl

    discord.http.Route.BASE = os.environ["PLATFORM"] + "/api/v10"
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["PLATFORM"].replace("http", "ws"))
