import { z } from "zod";
import { deviceName } from "./devices.ts";
import { defineOperation } from "./operation.ts";
import { tenantId } from "./schemas.ts";

/** Maximum length of a device's identity in `authDevice`, in characters. */
const IDENTITY_MAX = 64;

export const getInstallScript = defineOperation({
  id: "getInstallScript",
  part: "Authentication and users",
  summary: "Get a shell script that installs an agent. The script uses the values of the query as defaults",
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
      .describe("Seconds between two keepalive messages"),
    preferred_hostname: deviceName.optional(),
    preferred_identity: z
      .string()
      .max(IDENTITY_MAX)
      // The script that a terminal displays must be the script that runs. Terminals interpret control characters, and
      // some other characters hide or reverse text. The expression lists the characters, because not all JSON Schema
      // validators support Unicode classes.
      .regex(
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern rejects control characters
        /^[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*$/,
        "must not contain control characters",
      )
      .optional()
      .describe("Identity that the agent sends instead of the machine's MAC address"),
  },
  success: { body: z.string(), mediaType: "text/x-shellscript" },
});
