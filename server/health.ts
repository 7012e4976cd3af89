import type { FastifyPluginAsync } from "fastify";
import fastifyPlugin from "fastify-plugin";
import "./http/declaredAccess.ts";
import type { Services } from "./services.ts";

const options = {
  logLevel: "warn",
  config: { publicBecause: "probes have no login, and learn one word" },
} as const;

const health: FastifyPluginAsync<{ services: Services }> = async (app, { services }) => {
  app.get("/healthz", options, async () => ({ status: "ok" }));

  app.get("/readyz", options, async (request, reply) => {
    try {
      await services.db.$queryRaw`SELECT 1`;
      return { status: "ok" };
    } catch (error) {
      request.log.error({ err: error }, "the database does not answer");
      return reply.code(503).send({ message: "the database does not answer" });
    }
  });
};

/** `/healthz`: the process answers; `/readyz`: the database does too, else 503. For probes, without login. */
export const healthPlugin = fastifyPlugin(health, { name: "health" });
