import { createHash } from "node:crypto";
import { fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "./SessionChannel.ts";

const FILE = "service_key.pub";
const LINE = /^ssh-rsa ([A-Za-z0-9+/]+={0,2})\n$/;

const fingerprintOf = (key: string): string =>
  `SHA256:${createHash("sha256").update(key, "base64").digest("base64").replace(/=+$/, "")}`;

/**
 * The key that the service logs in with, as the first enrollment has seen it. Whoever is between the agent and the service
 * later can log in with no other key.
 */
export class ServicePin {
  readonly #file: string;
  readonly #descriptor: number;
  #key: string | undefined;
  #warned: string | undefined;

  /**
   * Opens the pin in the folder of the device's key. The process may give up the rights for that folder afterwards.
   * @throws Error the process may not use the folder
   */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#file = join(folder, FILE);
    this.#descriptor = openSync(this.#file, "a+", 0o600);
    // A line that was cut off is no pin.
    this.#key = LINE.exec(readFileSync(this.#file, "utf8"))?.[1];
  }

  /** The pinned public key as SSH has it; undefined: the service has named none. */
  get key(): Buffer | undefined {
    return this.#key === undefined ? undefined : Buffer.from(this.#key, "base64");
  }

  /**
   * Takes the key that an answer of the service names, if none is pinned.
   * @param key as SSH has it, base64
   */
  learn(key: string, log: Log): void {
    if (key === this.#key) return;
    if (this.#key === undefined) {
      if (!LINE.test(`ssh-rsa ${key}\n`)) throw new Error("agent_key: must be an RSA key in base64");
      ftruncateSync(this.#descriptor);
      writeSync(this.#descriptor, `ssh-rsa ${key}\n`);
      fsyncSync(this.#descriptor);
      this.#key = key;
      log("info", "the service's key is pinned", { key: fingerprintOf(key) });
      return;
    }
    if (key === this.#warned) return;
    this.#warned = key;
    log("error", "the service names another key than the pinned one, which alone gets in", {
      pinned: fingerprintOf(this.#key),
      named: fingerprintOf(key),
      remedy: `if the service's key was replaced: delete ${this.#file} and restart the agent`,
    });
  }
}
