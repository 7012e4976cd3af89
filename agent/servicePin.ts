import { createHash } from "node:crypto";
import { fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "./SessionChannel.ts";

const FILE = "service_key.pub";
const LINE = /^ssh-rsa ([A-Za-z0-9+/]+={0,2})\n$/;

const fingerprintOf = (key: string): string =>
  `SHA256:${createHash("sha256").update(key, "base64").digest("base64").replace(/=+$/, "")}`;

/**
 * The pinned public key of the service. The agent stores ("pins") the key at the first enrollment, and rejects logins
 * with a different public key. So an attacker who later intercepts the connection to the service cannot log in to the
 * device with a key of their own.
 */
export class ServicePin {
  readonly #file: string;
  readonly #descriptor: number;
  #key: string | undefined;
  #warned: string | undefined;

  /**
   * Opens the file of the pinned key, which is in the same folder as the device's key. After that, the process needs no
   * permissions for the folder.
   * @throws Error the process cannot use the folder
   */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#file = join(folder, FILE);
    this.#descriptor = openSync(this.#file, "a+", 0o600);
    // An incomplete line is not a pinned key.
    this.#key = LINE.exec(readFileSync(this.#file, "utf8"))?.[1];
  }

  /** The pinned public key in SSH's wire format; undefined if no key is pinned. */
  get key(): Buffer | undefined {
    return this.#key === undefined ? undefined : Buffer.from(this.#key, "base64");
  }

  /**
   * Pins the service's key if no key is pinned yet. Logs an error if the service's key differs from the pinned key.
   * @param key the service's key in SSH's wire format, as base64
   */
  learn(key: string, log: Log): void {
    if (key === this.#key) return;
    if (this.#key === undefined) {
      if (!LINE.test(`ssh-rsa ${key}\n`)) throw new Error("agent_key must be an RSA key in base64");
      ftruncateSync(this.#descriptor);
      writeSync(this.#descriptor, `ssh-rsa ${key}\n`);
      fsyncSync(this.#descriptor);
      this.#key = key;
      log("info", "the service's key is pinned", { key: fingerprintOf(key) });
      return;
    }
    if (key === this.#warned) return;
    this.#warned = key;
    log("error", "the service's key differs from the pinned key; only the pinned key can log in", {
      pinned: fingerprintOf(this.#key),
      named: fingerprintOf(key),
      remedy: `If the service's key was replaced, delete ${this.#file} and restart the agent`,
    });
  }
}
