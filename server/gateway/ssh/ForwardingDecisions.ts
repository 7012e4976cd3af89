import { isIP } from "node:net";
import { matchesWhole } from "@gatehouse-access/sdk/policy";
import { type Decision, DecisionTurns } from "../../DecisionTurns.ts";
import { NamespacePatterns } from "../../NamespacePatterns.ts";
import type { AdmittedDevice } from "../protocol.ts";

/** Maximum number of characters of a forwarding target that an error message shows. */
const TARGET_SHOWN = 100;

/** Matches host names. Also matches host names with underscores, because some networks use them. */
const HOST_NAME = /^[A-Za-z0-9_.-]{1,255}$/;

class BusyError extends Error {}

/** Allows or denies the forwarding of connections for logins. */
export class ForwardingDecisions {
  readonly #turns = new DecisionTurns(() => new BusyError());
  readonly #patterns = new NamespacePatterns();

  /**
   * Returns the reason why a login may not forward a connection to a target. Returns undefined if the login may forward
   * the connection.
   */
  async prohibitionOf(
    { forwarding, tenantId }: Pick<AdmittedDevice, "forwarding" | "tenantId">,
    host: string,
    port: number,
  ): Promise<string | undefined> {
    const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    // Check the host name first, because patterns such as `.*` match any string. The device would look up a host with
    // other characters by its own rules: for example, some functions read a name only up to the first NUL character.
    if (isIP(host) === 0 && !HOST_NAME.test(host)) {
      return `${JSON.stringify(target.slice(0, TARGET_SHOWN))} has no valid host name or IP address`;
    }
    if (forwarding === undefined) return "forwarding is off on this server (--ssh-forwarding)";
    try {
      if (await this.#turns.run(tenantId, this.#matches(tenantId, forwarding, target))) return undefined;
    } catch (error) {
      if (error instanceof BusyError)
        return "too many forwarding requests of the namespace are waiting; try again";
      throw error;
    }
    const remedy = "Add a rule to the namespace's setting ssh_forwarding";
    return `forwarding to ${target.slice(0, TARGET_SHOWN)} is not allowed. ${remedy}`;
  }

  *#matches(tenantId: string, patterns: readonly string[], target: string): Decision<boolean> {
    const source = this.#patterns.of(tenantId);
    for (const pattern of patterns) {
      if (matchesWhole(pattern, target, source)) return true;
      yield;
    }
    return false;
  }
}
