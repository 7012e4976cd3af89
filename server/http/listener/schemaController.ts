import type { FastifyServerOptions } from "fastify";

function unused(): never {
  throw new Error("a route has a JSON schema but no compiler");
}

/**
 * Prevents Fastify from loading its JSON schema compilers, because loading them takes a tenth of the start time. The
 * service does not need them, because the contract validates requests and operations provide their own serializers.
 */
export const schemaController: FastifyServerOptions["schemaController"] = {
  compilersFactory: { buildValidator: unused, buildSerializer: unused },
};
