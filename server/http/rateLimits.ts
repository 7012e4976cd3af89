import type { FastifyInstance } from "fastify";
import { digestOf } from "../secrets/digest.ts";
import type { Services } from "../services.ts";
import { Exhausted, limitInMemory, MemoryCounts, tooMany } from "./memoryCounts.ts";
import { countInDatabase, isKnownNetwork } from "./rateLimitCounts.ts";
import "./declaredAccess.ts";
import "./requestFacts.ts";

/**
 * Refuses requests of limited operations that come too often: 429 with `Retry-After`. An address is counted
 * before anything else of the request is looked at, an account when the body is there; a network from which the
 * account's password came lately has a limit of its own for it. Lockouts (rules section 9) count wrong logins and go
 * on beside this.
 */
export function limitRequests(app: FastifyInstance, services: Services): void {
  const { loginsPerAddress, loginsPerAccount, reportsPerAddress } = services.settings.limits;
  const reports = new MemoryCounts();
  const exhausted = new Exhausted();

  const limitLogins = async (key: string, limit: number): Promise<void> => {
    if (limit <= 0) return;
    const time = services.now().getTime();
    const end = exhausted.endOf(key, time);
    if (end !== undefined) throw tooMany(end, time);
    const { count, endsAt } = await countInDatabase(services, key);
    if (count <= limit) return;
    exhausted.add(key, endsAt, time);
    throw tooMany(endsAt, time);
  };
  const limitReports = (network: string): void => {
    limitInMemory(reports, network, reportsPerAddress, services.now().getTime());
  };

  app.addHook("onRequest", async ({ facts, routeOptions }) => {
    const limit = routeOptions.config.operation?.limit ?? routeOptions.config.limit;
    if (limit?.kind === "login") await limitLogins(`login from ${facts.network}`, loginsPerAddress);
    if (limit?.kind === "report") limitReports(facts.network);
  });
  app.addHook("preHandler", async ({ body, facts, routeOptions }) => {
    const field = routeOptions.config.operation?.limit?.account;
    const account = field && (body as Record<string, unknown> | null | undefined)?.[field];
    if (typeof account !== "string" || account === "" || loginsPerAccount <= 0) return;
    // Else strangers could keep the user out, who comes from where the password was right before.
    const known = await isKnownNetwork(services, account, facts.network);
    // A digest: it may be a token, and a name may have any length.
    const key = `login as ${digestOf(account.toLowerCase())}`;
    await limitLogins(known ? `${key} from ${facts.network}` : key, loginsPerAccount);
  });
}
