import type { Access } from "../access.ts";
import type { AccessKey } from "../facts.ts";
import { isEveryDevice, isEverything } from "./finder.ts";
import type { Finding } from "./finding.ts";
import { fieldOf, filterText, keyName, keyObject, objectId } from "./wording.ts";

/**
 * Findings for keys that are for no device, and for keys that are for every login on every device.
 * @param explained ids of the objects with a wrong pattern, whose finding explains why they match nothing
 */
export function keyFilters(access: Access, explained: ReadonlySet<string>): Finding[] {
  const { keys, devices } = access.policy;
  return keys.flatMap((key) => {
    if (isEverything(key.username, "login", false) && isEveryDevice(key.filter, false))
      return [everything(key)];
    const idle =
      devices.length > 0 &&
      !explained.has(objectId(keyObject(key))) &&
      access.devicesOf(key.filter, false).isEmpty();
    return idle ? [nothing(key)] : [];
  });
}

const everything = (key: AccessKey): Finding => ({
  rule: "matches-everything",
  severity: "warning",
  message: `${keyName(key)} is for every login on every device.`,
  object: keyObject(key),
  suggestion: "Name the logins with login(), and the devices by tags or with hostname().",
});

const nothing = (key: AccessKey): Finding => ({
  rule: "never-matches",
  severity: "warning",
  message: `${keyName(key)} admits nobody: its ${filterText(key.filter)} is for no device.`,
  object: keyObject(key),
  field: fieldOf(key.filter),
  suggestion: "Correct the filter, or remove the key.",
});
