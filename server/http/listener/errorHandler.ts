import type { FastifyInstance } from "fastify";
import { outageOf } from "../../db/outage.ts";
import { answerTo, PaymentGatewayError } from "../../errors.ts";

/**
 * Sends every error as `{message}`, or as an array of field names. Only the log contains the message of an unexpected
 * error.
 */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler(async (error, request, reply) => {
    const answer = answerTo(error);
    if (request.signal.aborted && error === request.signal.reason) {
      request.log.info("the client disconnected; its request was dropped");
    } else if (answer === undefined) {
      // The logger includes the request id, which the response also contains (X-Request-ID).
      request.log.error({ err: error }, "request failed");
    } else if (["unwritable", "unreachable"].includes(outageOf(error) ?? "")) {
      request.log.error({ err: error }, "database unavailable");
    } else if (error instanceof PaymentGatewayError) {
      request.log.warn({ err: error.cause, code: error.code }, "the payment gateway failed");
    }
    const { status, body, headers } = answer ?? {
      status: 500,
      body: { message: "internal error" },
      headers: {},
    };
    // The body is sent as text, because the route's serializer may have a different schema for this status.
    return reply
      .code(status)
      .headers(headers)
      .type("application/json; charset=utf-8")
      .serializer((payload: unknown) => JSON.stringify(payload))
      .send(body);
  });
}
