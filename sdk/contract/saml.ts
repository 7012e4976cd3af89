import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model } from "./schemas.ts";

export const samlUrl = model(
  "SamlUrl",
  "Address of the identity provider's login page, for the user's browser",
  z.object({ url: z.url() }),
);

export const getSamlAuthUrl = defineOperation({
  id: "getSamlAuthUrl",
  part: "Authentication and users",
  summary: "Start a login at the identity provider. The returned address can be used once, within 10 minutes",
  method: "GET",
  path: "/api/user/saml/auth",
  edition: "enterprise",
  // Community instances also route the operation and return 501, not 404 (rules section 19).
  routed: "always",
  auth: ["none"],
  scope: "public",
  limit: { kind: "login" },
  success: { body: samlUrl },
  errors: { 501: "SAML is off, or the edition is `community`" },
});
