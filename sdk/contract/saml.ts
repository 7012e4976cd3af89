import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model } from "./schemas.ts";

export const samlUrl = model(
  "SamlUrl",
  "Where a browser goes to log in at the identity provider",
  z.object({ url: z.url() }),
);

export const getSamlAuthUrl = defineOperation({
  id: "getSamlAuthUrl",
  part: "Authentication and users",
  summary: "Begin a login at the identity provider; the answer's address works once, for 10 minutes",
  method: "GET",
  path: "/api/user/saml/auth",
  edition: "enterprise",
  // A community instance says that it has no SAML, instead of not knowing the path (rules section 19).
  routed: "always",
  auth: ["none"],
  scope: "public",
  limit: { kind: "login" },
  success: { body: samlUrl },
  errors: { 501: "SAML is off, or the edition is community" },
});
