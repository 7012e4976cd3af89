import { checkFutureDataFolder } from "../files/dataFolder.ts";
import { OperatorError, problemsOf } from "../OperatorError.ts";
import { knownHostKey, readHostKey } from "../secrets/hostKey.ts";
import { knownSecret } from "../secrets/instanceSecret.ts";
import type { Config } from "../settings/readConfig.ts";
import { readMetricsToken } from "./metricsServer.ts";
import { Positions } from "./positions.ts";
import { readTls } from "./tls.ts";

/**
 * Checks the files of a configuration: the TLS files, SSH host key, metrics token and position file, and the data
 * folder with its secret. Opens no port and no database, leaves no file behind, and connects to no other service.
 * @throws OperatorError the message has one line for each file that the service cannot use
 */
export function checkFiles({ settings, tls, secret }: Config): void {
  const { dataDir, sshPort, sshHostKeyFile, metricsTokenFile, geoipFile } = settings;
  const checks: (() => unknown)[] = [];
  if (tls) checks.push(() => readTls(tls));
  if (sshHostKeyFile !== undefined) checks.push(() => readHostKey(dataDir, sshHostKeyFile));
  if (metricsTokenFile !== undefined) checks.push(() => readMetricsToken(metricsTokenFile));
  if (geoipFile !== undefined) checks.push(() => new Positions(geoipFile, () => {}));
  checks.push(() => checkFutureDataFolder(dataDir));
  checks.push(() => knownSecret(dataDir, secret));
  if (sshPort !== undefined && sshHostKeyFile === undefined) {
    checks.push(() => knownHostKey(dataDir, undefined));
  }
  const problems = problemsOf(checks);
  if (problems.length > 0) throw new OperatorError(problems.join("\n"));
}
