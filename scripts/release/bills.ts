// Bills of materials in the form of CycloneDX, which npm and the plugin of esbuild make.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A bill of materials, as far as it is used here. */
export interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: Component[];
  readonly dependencies: { readonly ref: string; readonly dependsOn?: string[] }[];
}

/** A library in a bill of materials, or what the bill is of. */
export interface Component {
  readonly "bom-ref": string;
  readonly purl: string;
  licenses?: readonly { license?: { id?: string; name?: string }; expression?: string }[];
  /** Its license files, in base64; only bills of programs have it, until they are written. */
  readonly evidence?: { readonly licenses?: readonly { license: { text: { content: string } } }[] };
}

/** Libraries whose package.json does not contain the license that their file LICENSE has, as a person has read it. */
const LICENSES_READ: Readonly<Record<string, string>> = {
  "pkg:npm/%40logdna/tail-file@2.2.0": "MIT",
  "pkg:npm/buildcheck@0.0.7": "MIT",
  "pkg:npm/cpu-features@0.0.10": "MIT",
  "pkg:npm/ssh2@1.17.0": "MIT",
};

/** The license of a component: as SPDX writes it, or as its package.json has it; empty where it has none. */
export const licenseOf = ({ licenses = [] }: Pick<Component, "licenses">): string =>
  licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? "").join(" AND ");

/** Reads a bill, and completes the licenses that a person has read. */
export function readBill(text: string): Bill {
  const bill = JSON.parse(text) as Bill;
  for (const component of bill.components) {
    const id = LICENSES_READ[component.purl];
    if (id !== undefined) component.licenses = [{ license: { id } }];
  }
  return bill;
}

/** Reads the bill of a program that is one file: the plugin of esbuild writes it as one of the repository. */
export function readProgramBill(text: string, name: string): Bill {
  const { "bom-ref": ref } = (JSON.parse(text) as Bill).metadata.component;
  const own = ref.replace(/^.*@([^@#]+)#.*$/, `${name}@$1`);
  // Without the addresses of repositories, purls are those that npm writes.
  const bill = readBill(text.replaceAll(ref, own).replaceAll(/\?vcs_url=[^"]*/g, ""));
  Object.assign(bill.metadata.component, { name, purl: `pkg:generic/${own}` });
  return bill;
}

/** Writes a bill, without what differs each time (serial number, time, where archives lay), and without license files. */
export async function writeBill(out: string, name: string, bill: Bill): Promise<void> {
  const omitted = ["serialNumber", "timestamp", "evidence"];
  const text = JSON.stringify(bill, (key, value) => (omitted.includes(key) ? undefined : value), 2);
  await writeFile(
    join(out, `${name}.cdx.json`),
    `${text.replaceAll(/"file:[^"]*\/([^"/]+)"/g, '"file:$1"')}\n`,
  );
}

/** The texts of a component's licenses. */
export const licenseTexts = ({ evidence }: Component): string[] =>
  (evidence?.licenses ?? []).map(({ license }) =>
    Buffer.from(license.text.content, "base64").toString().trim(),
  );
