// Bills of materials in the CycloneDX format, which npm and the plugin of esbuild create.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A bill of materials, limited to the fields that the release uses. */
export interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: Component[];
  readonly dependencies: { readonly ref: string; readonly dependsOn?: string[] }[];
}

/** A library in a bill of materials, or the subject of the bill. */
export interface Component {
  readonly "bom-ref": string;
  readonly purl: string;
  licenses?: readonly { license?: { id?: string; name?: string }; expression?: string }[];
  /** The component's license files, in base64. Only bills of programs contain them, until the bills are written. */
  readonly evidence?: { readonly licenses?: readonly { license: { text: { content: string } } }[] };
}

/** Libraries whose package.json lacks the license. A developer has read it in their file LICENSE. */
const LICENSES_READ: Readonly<Record<string, string>> = {
  "pkg:npm/%40logdna/tail-file@2.2.0": "MIT",
  "pkg:npm/buildcheck@0.0.7": "MIT",
  "pkg:npm/cpu-features@0.0.10": "MIT",
  "pkg:npm/ssh2@1.17.0": "MIT",
};

/**
 * Returns the license of a component: the SPDX identifier, or the text of its package.json; empty without a license.
 */
export const licenseOf = ({ licenses = [] }: Pick<Component, "licenses">): string =>
  licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? "").join(" AND ");

/** Reads a bill, and adds the licenses that a developer has read. */
export function readBill(text: string): Bill {
  const bill = JSON.parse(text) as Bill;
  for (const component of bill.components) {
    const id = LICENSES_READ[component.purl];
    if (id !== undefined) component.licenses = [{ license: { id } }];
  }
  return bill;
}

/** Reads the bill of a program that is one file. The plugin of esbuild writes it as a bill of the repository. */
export function readProgramBill(text: string, name: string): Bill {
  const { "bom-ref": ref } = (JSON.parse(text) as Bill).metadata.component;
  const own = ref.replace(/^.*@([^@#]+)#.*$/, `${name}@$1`);
  // Without the addresses of repositories, the purls are equal to npm's.
  const bill = readBill(text.replaceAll(ref, own).replaceAll(/\?vcs_url=[^"]*/g, ""));
  Object.assign(bill.metadata.component, { name, purl: `pkg:generic/${own}` });
  return bill;
}

/**
 * Writes a bill without license files, and without the values that differ each time: serial number, time, and folders
 * of archives.
 */
export async function writeBill(out: string, name: string, bill: Bill): Promise<void> {
  const omitted = ["serialNumber", "timestamp", "evidence"];
  const text = JSON.stringify(bill, (key, value) => (omitted.includes(key) ? undefined : value), 2);
  await writeFile(
    join(out, `${name}.cdx.json`),
    `${text.replaceAll(/"file:[^"]*\/([^"/]+)"/g, '"file:$1"')}\n`,
  );
}

/** Returns the texts of a component's licenses. */
export const licenseTexts = ({ evidence }: Component): string[] =>
  (evidence?.licenses ?? []).map(({ license }) =>
    Buffer.from(license.text.content, "base64").toString().trim(),
  );
