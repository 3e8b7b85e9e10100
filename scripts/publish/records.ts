import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toArtifact, type Artifact, type MissingArtifact } from '#scripts/publish/artifact.ts'
import { python } from '#scripts/publish/python-package.ts'
import { runTool, type Source, type Workshop } from '#scripts/publish/source.ts'

export const sumsFile = 'SHA256SUMS'

/** The entry of a version in the changelog, without its heading. */
function notesOf(changelog: string, version: string): string {
  const [, ...entries] = changelog.split(/^## /m)
  const entry = entries.find(text => text.startsWith(`[${version}]`))
  if (!entry) throw new Error(`CHANGELOG.md has no entry of ${version}`)
  return entry.slice(entry.indexOf('\n') + 1).trim()
}

/** Writes the notes of the release. */
export function writeNotes({ source, folder }: Workshop): string {
  const notes = notesOf(readFileSync(join(source.tree, 'CHANGELOG.md'), 'utf8'), source.version)
  const path = join(folder, `RELEASE-NOTES-${source.version}.md`)
  writeFileSync(path, `# Memory Vault ${source.version}\n\n${notes}\n`)
  return path
}

/**
 * Writes the provenance of all artifacts as a statement of in-toto with SLSA's predicate, version 1, ready to be signed, and
 * SHA256SUMS of all files, as `sha256sum --check` reads it.
 *
 * @returns the two, which stand in no sum of their own
 */
export async function writeProvenance(
  { source, folder }: Workshop,
  artifacts: readonly Artifact[],
  missing: readonly MissingArtifact[],
): Promise<string[]> {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artifacts.map(({ file, sha256 }) => ({ name: file, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:memory-vault:release:1',
        externalParameters: {
          version: source.version,
          parts: [...new Set(artifacts.map(one => one.part))],
        },
        internalParameters: { sourceDateEpoch: source.epoch, missing },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: source.commit } },
          { name: 'package-lock.json', digest: { sha256: source.lockDigest } },
          ...(await tools(source)),
        ],
      },
      runDetails: { builder: { id: 'urn:memory-vault:npm-run-release' } },
    },
  }
  const provenance = join(folder, `provenance-${source.version}.intoto.json`)
  writeFileSync(provenance, `${JSON.stringify(statement, null, 2)}\n`)
  const listed = [...artifacts, toArtifact('record', provenance)]
    .toSorted((one, other) => (one.file < other.file ? -1 : 1))
    .map(({ file, sha256 }) => `${sha256}  ${file}\n`)
  const sums = join(folder, sumsFile)
  writeFileSync(sums, listed.join(''))
  return [provenance, sums]
}

/** Versions of the programs that write bytes of a release. */
async function tools({
  root,
  tree,
}: Source): Promise<{ name: string; annotations: { version: string } }[]> {
  const say = (command: string, ...args: string[]): Promise<string> =>
    runTool(command, args, { cwd: root }).catch(() => 'not installed')
  const compiler = JSON.parse(
    readFileSync(join(root, 'node_modules/typescript/package.json'), 'utf8'),
  ) as { version: string }
  const [setuptools] = readFileSync(join(tree, 'scripts/publish/requirements.txt'), 'utf8').split(
    ' ',
  )
  const versions: Record<string, string> = {
    node: process.version,
    zlib: process.versions.zlib,
    npm: await say('npm', '--version'),
    git: await say('git', '--version'),
    typescript: compiler.version,
    python: await say(python, '--version'),
    setuptools: setuptools!.replace('setuptools==', ''),
    buildah: await say('buildah', '--version'),
  }
  return Object.entries(versions).map(([name, version]) => ({ name, annotations: { version } }))
}
