// Has discord.js look for the platform at PLATFORM: node --import ./elsewhere.mjs …
import { DefaultRestOptions } from "discord.js";

DefaultRestOptions.api = process.env.PLATFORM + "/api";
