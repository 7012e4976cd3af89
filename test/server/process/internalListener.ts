import { startService, type TestService } from "../../support/service.ts";

/** The internal token of a service that {@link startInternal} starts. */
export const internalToken = "internal-token-of-a-test-process-0";

/** Starts a service with a listener for internal operations. */
export const startInternal = (env: Record<string, string>) =>
  startService({ env: { GATEHOUSE_INTERNAL_PORT: "0", GATEHOUSE_INTERNAL_TOKEN: internalToken, ...env } });

/** Returns the address of the listener for internal operations. */
export const internalUrl = (service: TestService) =>
  String(service.logs().find((line) => line.msg === "listening for internal operations")?.address);
