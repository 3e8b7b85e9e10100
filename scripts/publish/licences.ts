import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Workshop } from '#scripts/publish/source.ts'

type LockedPackage = {
  version?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  link?: boolean
}

/** A package that the service installs, with the texts of its licence. */
type Licence = { name: string; version: string; licence: string; texts: string[] }

/** The packages that an installation without development packages has, in the order of their paths. */
export function readLicences(root: string): Licence[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return Object.entries(lock.packages)
    .filter(([path, one]) => path && !one.dev && !one.devOptional && !one.link)
    .map(([path, { version, license }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version: version!,
      licence: license ?? 'none stated',
      texts: readTexts(join(root, path)),
    }))
}

/** Licences, notices and copyrights that lie beside the manifest of a package. */
const readTexts = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile() && /^(?:licen[cs]e|notice|copying|copyright)/i.test(entry.name))
    .map(({ name }) => name)
    .toSorted()
    .map(name => readFileSync(join(folder, name), 'utf8').trim())

/**
 * Writes the licences of what image and source install, each text once under all packages that have it.
 *
 * @returns the file
 */
export function writeLicences({ source, folder }: Workshop): string {
  const packages = readLicences(source.tree)
  const byText = new Map<string, string[]>()
  for (const { name, version, licence, texts } of packages) {
    const text =
      texts.join('\n\n') || `(The package has no file of its licence; it states ${licence}.)`
    const heading = `${name} ${version} (${licence})`
    byText.set(text, [...(byText.get(text) ?? []), heading])
  }
  const head =
    `Memory Vault ${source.version} is under the MIT licence, which stands in LICENSE. ` +
    `These are the licences of the ${packages.length} packages that it installs from npm.`
  const parts = [...byText].map(([text, names]) => `${names.join('\n')}\n\n${text}`)
  const path = join(folder, `THIRD-PARTY-LICENCES-${source.version}.txt`)
  writeFileSync(path, `${[head, ...parts].join(`\n\n${'-'.repeat(78)}\n\n`)}\n`)
  return path
}
