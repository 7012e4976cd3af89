import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ContentTypeError, WrongTypeError } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies. An empty body is treated as absent, whatever its content type is, because clients send the content
 * type `application/json` without a body on PATCH and DELETE. If an operation has no body, the service ignores the body
 * of a request (rules D17, D18).
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
        throw new WrongTypeError("body must be JSON");
      }
    },
  );
  // The API defines no other content types, and the service does not guess the type of a body.
  app.addContentTypeParser(
    "*",
    { parseAs: "buffer" as const },
    async (request: FastifyRequest, body: Buffer) => {
      if (body.length === 0 || request.routeOptions.config.operation?.body === undefined) return undefined;
      throw new ContentTypeError("body must have the content type application/json");
    },
  );
}

/**
 * Maximum number of chunks of a request body. A limit on bytes is not sufficient, because Node handles each chunk
 * separately. Clients send chunks of some kilobytes.
 */
export const CHUNKS_MAX = 2000;
/** Maximum number of bytes of a body that the service reads after it has sent the response. */
const REST = 128 * 1024;
/** Time, in milliseconds, that a client has to read the response before the service closes the connection. */
const LINGER = 1000;

/** The connections that are waiting for the service to read from them again. */
const waiting: Socket[] = [];

/**
 * Reads from one waiting connection in each turn of the event loop, so that all other connections have their turns.
 */
function readNext(): void {
  waiting.shift()?.resume();
  if (waiting.length > 0) setImmediate(readNext);
}

function readInTurn(socket: Socket): void {
  waiting.push(socket);
  if (waiting.length === 1) setImmediate(readNext);
}

/**
 * Limits the number of bytes of a request that the service reads after the response. Without this limit, a client could
 * send the body of a refused request forever. If the remaining body is small, the client can use the connection again.
 */
export function boundRest(request: IncomingMessage): void {
  const { socket } = request;
  const most = socket.bytesRead + REST;
  let isLeaving = false;
  const check = () => {
    if (request.complete) {
      socket.off("data", check);
      return;
    }
    // Pause, because Node would otherwise read up to 32 times in one turn.
    socket.pause();
    if (isLeaving) return;
    isLeaving = socket.bytesRead > most;
    if (isLeaving) setTimeout(() => socket.destroy(), LINGER).unref();
    else readInTurn(socket);
  };
  // If a `data` listener exists, Node passes each read to JavaScript before it reads again.
  socket.on("data", check);
  socket.pause();
  readInTurn(socket);
}
