import type { FastifyInstance } from "fastify";
import { InvalidError } from "../../errors.ts";
import type { Services } from "../../services.ts";
import type { SamlSettings } from "../../settings/readConfig.ts";
import { countLogin } from "../users/countLogin.ts";
import { CONSUMER_PATH, METADATA_PATH, serviceMetadata } from "./identityProvider.ts";
import { finishSamlLogin } from "./login.ts";
import "../../http/access/declaredAccess.ts";
import "../../http/listener/requestFacts.ts";

/**
 * Maximum size of a form with a response, in bytes. A response has several kilobytes, and more if the user is in many
 * groups.
 */
const BODY_LIMIT = 128 * 1024;

/**
 * Serves the two routes that SAML prescribes. For this reason, they are not operations of the API. Identity providers
 * read the metadata from one route. Browsers send the form with the response to the other route.
 */
export async function serveSaml(
  app: FastifyInstance,
  services: Services,
  settings: SamlSettings,
): Promise<void> {
  app.get(
    METADATA_PATH,
    { config: { publicBecause: "metadata for identity providers, without user data" } },
    async (_request, reply) =>
      reply.type("application/samlmetadata+xml; charset=utf-8").send(await serviceMetadata(settings)),
  );
  // Registered in a separate scope, because no other route accepts forms.
  await app.register(async (scope) => {
    scope.addContentTypeParser(
      "application/x-www-form-urlencoded",
      { parseAs: "string" as const },
      async (_request: unknown, body: string) => new URLSearchParams(body),
    );
    scope.post(
      CONSUMER_PATH,
      {
        bodyLimit: BODY_LIMIT,
        config: {
          publicBecause: "the signed response in the form authenticates the user",
          limit: { kind: "login" },
        },
      },
      async ({ body, facts, log }, reply) => {
        const response = body instanceof URLSearchParams ? body.get("SAMLResponse") : null;
        if (!response) throw new InvalidError("SAMLResponse: send the response as a form field");
        const refused = (error: Error) => log.warn({ reason: error.message }, "a SAML response was refused");
        const login = { response, request: facts, refused };
        const address = await countLogin(services, "saml", () => finishSamlLogin(services, settings, login));
        return reply.redirect(address, 303);
      },
    );
  });
}
