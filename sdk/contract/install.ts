import { z } from "zod";
import { deviceName } from "./devices.ts";
import { defineOperation } from "./operation.ts";
import { tenantId } from "./schemas.ts";

/** Longest identity of a device that `authDevice` takes, in characters. */
const IDENTITY_MAX = 64;

export const getInstallScript = defineOperation({
  id: "getInstallScript",
  part: "Authentication and users",
  summary: "A shell script that installs an agent; what the query says stands in it as the script's defaults",
  method: "GET",
  path: "/install.sh",
  aliases: ["/kickstart.sh", "/api/install"],
  auth: ["none"],
  scope: "public",
  query: {
    tenant_id: tenantId.optional(),
    keepalive_interval: z
      .string()
      .regex(/^[1-9]\d{0,4}$/, "must be a whole number of seconds from 1 to 99999")
      .optional()
      .describe("Seconds between two signs of life"),
    preferred_hostname: deviceName.optional(),
    preferred_identity: z
      .string()
      .max(IDENTITY_MAX)
      // A reader of the script shall see what it does: terminals obey control characters, and others hide or turn
      // text. Written out, since not every reader of JSON Schema knows classes of Unicode.
      .regex(
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
        /^[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*$/,
        "must not hold control characters",
      )
      .optional()
      .describe("Sent instead of the machine's MAC address"),
  },
  success: { body: z.string(), mediaType: "text/x-shellscript" },
});
