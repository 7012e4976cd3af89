import type { FastifyInstance } from "fastify";
import { outageOf } from "../../db/outage.ts";
import { answerTo, PaymentGatewayError } from "../../errors.ts";

/**
 * Sends every error as `{message}`, or as an array of field names. The message of an unexpected error appears only in
 * the log.
 */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler(async (error, request, reply) => {
    const answer = answerTo(error);
    if (request.signal.aborted && error === request.signal.reason) {
      request.log.info("the client disconnected; its request was dropped");
    } else if (answer === undefined) {
      // The logger adds the request id, which is also in the response (X-Request-ID).
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
    // Send the body as text, because the route's serializer may have a different schema for this status.
    return reply
      .code(status)
      .headers(headers)
      .type("application/json; charset=utf-8")
      .serializer((payload: unknown) => JSON.stringify(payload))
      .send(body);
  });
}
