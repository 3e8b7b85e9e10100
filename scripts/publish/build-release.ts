import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  toArtifact,
  type Artifact,
  type Built,
  type MissingArtifact,
  type Part,
} from '#scripts/publish/artifact.ts'
import { writeBills } from '#scripts/publish/bill-of-materials.ts'
import { buildImages, type SystemPackage } from '#scripts/publish/image.ts'
import { writeLicences } from '#scripts/publish/licences.ts'
import { buildPythonPackage } from '#scripts/publish/python-package.ts'
import { writeNotes, writeProvenance } from '#scripts/publish/records.ts'
import {
  archiveSource,
  layOutSource,
  runTool,
  type Source,
  type Workshop,
} from '#scripts/publish/source.ts'

/** The packages for npm, by their folders. */
const npmPackages = [
  'api/client',
  'api/client/n8n',
  'api/client/openclaw',
  'scripts/bridge',
  'scripts/hooks',
] as const

export type Release = Pick<Source, 'version' | 'commit' | 'isDirty' | 'root'> & {
  folder: string
  artifacts: Artifact[]
  missing: MissingArtifact[]
}

type Plan = {
  root: string
  folder: string
  only: readonly Part[]
  imageOptions: readonly string[]
}

const builders: Record<
  Part,
  (workshop: Workshop) => Promise<Built & { system?: SystemPackage[] }>
> = {
  source: async ({ source, folder }) => {
    const name = `memory-vault-${source.version}`
    const file = join(folder, `${name}.tar.gz`)
    await archiveSource(source, '', name, file)
    return { files: [file] }
  },
  npm: async ({ source: { tree }, folder }) => {
    const places = npmPackages.map(place => `./${place}`)
    const how = ['--pack-destination', folder, '--json', '--silent', '--offline']
    const printed = await runTool('npm', ['pack', ...places, ...how], { cwd: tree })
    const packed = JSON.parse(printed) as { filename: string }[]
    return { files: packed.map(({ filename }) => join(folder, filename)) }
  },
  python: buildPythonPackage,
  image: buildImages,
  chart: async ({ source, folder }) => {
    const file = join(folder, `memory-vault-chart-${source.version}.tgz`)
    await archiveSource(source, 'scripts/deploy/kubernetes', 'memory-vault', file)
    return { files: [file] }
  },
}

/**
 * Builds the parts of a release into a folder, and beside them a bill of materials of each, the licences of what the service
 * brings, notes, provenance and checksums. What this machine cannot build is named with the reason.
 */
export async function buildRelease({ root, folder, only, imageOptions }: Plan): Promise<Release> {
  process.umask(0o022)
  const work = mkdtempSync(join(tmpdir(), 'vault-release-'))
  try {
    const source = await layOutSource(root, work)
    const made = join(work, 'made')
    mkdirSync(made)
    const workshop = { source, work, folder: made, imageOptions, builderOptions: [] }
    const artifacts: Artifact[] = []
    const missing: MissingArtifact[] = []
    const system: SystemPackage[] = []
    for (const part of only) {
      const built = await builders[part](workshop)
      artifacts.push(...built.files.toSorted().map(file => toArtifact(part, file)))
      missing.push(...(built.missing ?? []))
      system.push(...(built.system ?? []))
    }
    const bills = await writeBills(workshop, artifacts, system)
    const texts = [...bills, writeLicences(workshop), writeNotes(workshop)]
    artifacts.push(...texts.map(file => toArtifact('record', file)))
    const last = await writeProvenance(workshop, artifacts, missing)
    artifacts.push(...last.map(file => toArtifact('record', file)))
    rmSync(folder, { recursive: true, force: true })
    cpSync(made, folder, { recursive: true })
    return { ...source, folder, artifacts, missing }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
