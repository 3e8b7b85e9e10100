import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Of, type Artifact } from '#scripts/publish/artifact.ts'
import type { SystemPackage } from '#scripts/publish/image.ts'
import { readLicences } from '#scripts/publish/licences.ts'
import { runTool, type Source, type Workshop } from '#scripts/publish/source.ts'

type Component = { 'bom-ref': string; type: string; name: string; version: string } & Record<
  string,
  unknown
>
type Bill = {
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
  metadata: { component: Component }
}

/**
 * Writes a bill of materials in CycloneDX 1.5 for each artifact: what npm says that the service installs, for image and source;
 * the packages of the system for an image; nothing for the clients, which bring no package.
 *
 * @returns the files
 */
export async function writeBills(
  { source, folder }: Workshop,
  artifacts: readonly Artifact[],
  system: readonly SystemPackage[],
): Promise<string[]> {
  const service = await describeService(source)
  return artifacts.map(artifact => {
    const { part, file } = artifact
    const isService = part === 'source' || part === 'image'
    const { packages, direct, dependencies } = isService ? service : nothing
    const own = system.filter(({ image }) => image === file).map(toComponent)
    const root = describeArtifact(artifact, source.version)
    const bill = {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      serialNumber: `urn:uuid:${toUuid(sha256Of(`${source.commit} ${file}`))}`,
      version: 1,
      metadata: {
        timestamp: new Date(source.epoch * 1000).toISOString(),
        tools: [{ vendor: 'memory-vault', name: 'release', version: source.version }],
        component: root,
      },
      components: [...packages, ...own],
      dependencies: [
        { ref: root['bom-ref'], dependsOn: [...direct, ...own.map(one => one['bom-ref'])] },
        ...dependencies,
      ],
    }
    const path = join(folder, `${file}.cdx.json`)
    writeFileSync(path, `${JSON.stringify(bill, null, 2)}\n`)
    return path
  })
}

/** What an artifact installs: packages, those that it names itself, and what each of them needs. */
type Installed = {
  packages: Component[]
  direct: string[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const nothing: Installed = { packages: [], direct: [], dependencies: [] }

/**
 * What the service installs without development packages. npm's own `--omit dev` leaves out more than those: 130 of 218
 * packages were left of a lock by npm 11.19, so that they are chosen here by the lock.
 */
async function describeService({ tree }: Source): Promise<Installed> {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
  const bill = JSON.parse(await runTool('npm', args, { cwd: tree })) as Bill
  const used = new Set(readLicences(tree).map(({ name, version }) => `${name}@${version}`))
  const chosen = ({ ref, dependsOn }: Installed['dependencies'][number]) => ({
    ref,
    dependsOn: dependsOn.filter(one => used.has(one)),
  })
  const root = bill.metadata.component['bom-ref']
  return {
    packages: bill.components.filter(one => used.has(one['bom-ref'])),
    direct: bill.dependencies
      .filter(({ ref }) => ref === root)
      .flatMap(one => chosen(one).dependsOn),
    dependencies: bill.dependencies.filter(({ ref }) => used.has(ref)).map(chosen),
  }
}

function describeArtifact({ part, file, sha256 }: Artifact, version: string): Component {
  return {
    'bom-ref': file,
    type:
      part === 'image'
        ? 'container'
        : part === 'npm' || part === 'python'
          ? 'library'
          : 'application',
    name: file,
    version,
    licenses: [{ license: { id: 'MIT' } }],
    hashes: [{ alg: 'SHA-256', content: sha256 }],
  }
}

function toComponent({ name, version, architecture }: SystemPackage): Component {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`
  return { 'bom-ref': purl, type: 'library', name, version, purl }
}

/** A UUID of version 8 (RFC 9562) from a digest in hex. */
const toUuid = (digest: string): string =>
  [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `8${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join('-')
