import { readFileSync } from "node:fs";
import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { packageFile } from "../../files/packageFile.ts";
import type { Handler } from "../../http/handler.ts";

/**
 * Returns variable assignments for a POSIX shell. Each value is in single quotes, so that the shell does not interpret
 * it. A value must not contain NUL, because shells do not support NUL.
 * @param values by variable name. The names are not quoted, so they must be constants in the code, and never come from
 *   a request.
 */
export function shellAssignments(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join("");
}

/**
 * The parts of the package's install script before and after the line `# @DEFAULTS@`. The handler inserts the values of
 * a request between them.
 */
const [BEFORE = "", AFTER = ""] = readFileSync(packageFile("features/install/install.sh"), "utf8").split(
  "# @DEFAULTS@\n",
  2,
);

export const getInstallScript: Handler<PublicOperations["getInstallScript"]> = async (context) => {
  const { services, query, request } = context;
  const defaults = shellAssignments({
    default_server_address: request.origin.origin,
    default_agent_image: services.settings.agentImage,
    default_tenant_id: query.tenant_id ?? "",
    default_keepalive_interval: query.keepalive_interval ?? "",
    default_preferred_hostname: query.preferred_hostname ?? "",
    default_preferred_identity: query.preferred_identity ?? "",
  });
  return `${BEFORE}${defaults}${AFTER}`;
};
