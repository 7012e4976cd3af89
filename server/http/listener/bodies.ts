import type { FastifyInstance, FastifyRequest } from "fastify";
import { ContentTypeError, WrongTypeError } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies. An empty body counts as absent, whatever its content type, because clients send `application/json`
 * without a body on PATCH and DELETE. If an operation has no body, the body of a request is ignored (rules D17, D18).
 */
export function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" as const },
    async (request: FastifyRequest, body: Buffer) => {
      if (body.length === 0 || request.routeOptions.config.operation?.body === undefined) return undefined;
      try {
        return JSON.parse(utf8.decode(body));
      } catch {
        throw new WrongTypeError("body: must be JSON");
      }
    },
  );
  // The API defines no other content types, and the service does not guess the type of a body.
  app.addContentTypeParser(
    "*",
    { parseAs: "buffer" as const },
    async (request: FastifyRequest, body: Buffer) => {
      if (body.length === 0 || request.routeOptions.config.operation?.body === undefined) return undefined;
      throw new ContentTypeError("body: must have the content type application/json");
    },
  );
}
