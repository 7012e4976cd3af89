import { type InternalOperations, internal, sessions } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import { z } from "zod";
import { ForbiddenError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { Conversation, EndOfConversation } from "../../http/listener/webSockets.ts";
import type { Services } from "../../services.ts";
import { storeEvent } from "./entry.ts";
import { appendRecord } from "./records.ts";

type StreamedEvent = z.output<typeof internal.streamedEvent>;
type Size = Pick<z.output<typeof sessions.recordChunk>, "width" | "height">;

/**
 * Type of the events that contain the output of a seat (a channel of the session). The SSH service of version 0.19
 * sends these events.
 */
const OUTPUT = "pty-output";
/** Size of a terminal whose size is unknown or 0. */
const USUAL_SIZE: Size = { width: 80, height: 24 };
/**
 * Maximum number of seats (channels of the session) whose terminal size is kept in memory. Above the maximum, a new
 * seat replaces the oldest seat.
 */
const SEATS_MAX = 100;

const outputData = z.object({ output: sessions.recordChunk.shape.message });
const { width: cells } = sessions.recordChunk.shape;
const sizeData = z.object({ columns: cells.min(1), rows: cells.min(1) });

/** Receives events of a running session over a WebSocket. The stream may open before the session starts. */
export const streamSessionEvents: Handler<InternalOperations["streamSessionEvents"]> = async (context) => {
  const { services, params, log } = context;
  return new EventStream(services, params.uid, log);
};

class EventStream extends Conversation {
  readonly #services: Services;
  readonly #uid: string;
  readonly #log: FastifyBaseLogger;
  readonly #sizes = new Map<number, Size>();
  /**
   * Messages of the errors that were already logged. Each message is logged only once, because a sender may cause the
   * same error repeatedly.
   */
  readonly #logged = new Set<string>();

  constructor(services: Services, uid: string, log: FastifyBaseLogger) {
    super();
    this.#services = services;
    this.#uid = uid;
    this.#log = log;
  }

  async receive(message: string): Promise<void> {
    const event = readEvent(message);
    this.#rememberSize(event);
    try {
      if (event.type === OUTPUT) await this.#record(event);
      else await storeEvent(this.#services, this.#uid, { ...event, data: wireData(event.data) });
    } catch (error) {
      this.#refused(error);
    }
  }

  /**
   * Returns true if the session is closed. Returns false for a session that does not exist, because it may still start.
   */
  async isOver(): Promise<boolean> {
    const session = await this.#services.db.session.findUnique({
      where: { uid: this.#uid },
      select: { closedAt: true },
    });
    return session !== null && session.closedAt !== null;
  }

  #rememberSize({ type, seat, data }: StreamedEvent): void {
    if (type !== "pty-req" && type !== "window-change") return;
    const size = sizeData.safeParse(data);
    if (!size.success) return;
    this.#sizes.set(seat, { width: size.data.columns, height: size.data.rows });
    const [first] = this.#sizes.keys();
    if (this.#sizes.size > SEATS_MAX && first !== undefined) this.#sizes.delete(first);
  }

  async #record({ seat, data }: StreamedEvent): Promise<void> {
    const output = outputData.safeParse(data);
    if (!output.success) throw malformed(`data of ${OUTPUT} must contain the text field output`);
    if (this.#services.settings.edition === "community") {
      throw new ForbiddenError("the community edition does not support recordings");
    }
    const uid = this.#uid;
    const message = output.data.output;
    await appendRecord(this.#services, { uid }, seat, {
      uid,
      seat,
      message,
      ...(this.#sizes.get(seat) ?? USUAL_SIZE),
    });
  }

  /**
   * Handles the error of an event that could not be stored. Closes the stream if the event is malformed or the session
   * does not exist. Otherwise, skips the event, because the next event may be valid. The sender does not check whether
   * events are stored, and does not reopen a closed stream.
   */
  #refused(error: unknown): void {
    if (error instanceof EndOfConversation) throw error;
    if (error instanceof InvalidError) throw malformed(error.message);
    if (error instanceof NotFoundError) throw new EndOfConversation("refused", error.message);
    if (!(error instanceof ForbiddenError)) {
      this.#log.error({ err: error }, "an event of a session could not be stored");
      return;
    }
    if (this.#logged.has(error.message)) return;
    this.#logged.add(error.message);
    this.#log.warn({ reason: error.message }, "events of a session are not stored");
  }
}

const malformed = (reason: string) => new EndOfConversation("invalid", reason);

function readEvent(message: string): StreamedEvent {
  let value: unknown;
  try {
    value = JSON.parse(message);
  } catch {
    throw malformed("messages must be JSON");
  }
  const event = internal.streamedEvent.safeParse(value);
  if (event.success) return event.data;
  // The error message contains the name of the field, but not the value.
  throw malformed(
    `${event.error.issues[0]?.path.join(".") || "message"} must match the schema of an event`.slice(0, 100),
  );
}

/**
 * Converts an event's data to an object (models section 7). Version 0.19 sends the payload of most events as plain
 * text.
 */
function wireData(data: StreamedEvent["data"]): z.output<typeof sessions.sessionEvent>["data"] {
  if (typeof data === "string") return data === "" ? {} : { payload: data };
  return data ?? {};
}
