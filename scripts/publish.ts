import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseOptions } from '#scripts/command-line.ts'
import { parts, type Part } from '#scripts/publish/artifact.ts'
import { buildRelease } from '#scripts/publish/build-release.ts'
import { publicationSteps, publish } from '#scripts/publish/publication.ts'
import { sumsFile } from '#scripts/publish/records.ts'

const help = `Usage: npm run release -- [--dry-run] [--only <part,…>] [--to <folder>] [--image <name>]

Builds what a release publishes from the commit that is checked out, and publishes it. Files that were changed since and not
committed are no part of it. The same commit and tools give the same bytes.

  --dry-run           builds, and prints the commands that would publish
  --only <part,…>     of ${parts.join(', ')}; all without it
  --to <folder>       where the files go, dist/release without it; what is there is replaced
  --image <name>      where image and chart are pushed to, such as ghcr.io/example/memory-vault
  --image-option <o>  an option more for buildah, such as --image-option=--pull-never; may be repeated
  --help              this text
`
const options = parseOptions(help, {
  'dry-run': { type: 'boolean' },
  only: { type: 'string' },
  to: { type: 'string' },
  image: { type: 'string' },
  'image-option': { type: 'string', multiple: true },
})
const only = (options.only?.split(',') ?? parts) as Part[]
const unknown = only.filter(part => !parts.includes(part))
if (unknown.length > 0) {
  process.stderr.write(
    `There is no part ${unknown.join(', ')}: it is one of ${parts.join(', ')}.\n`,
  )
  process.exit(2)
}

const folder = resolve(options.to ?? 'dist/release')
if (existsSync(folder) && readdirSync(folder).length > 0 && !existsSync(join(folder, sumsFile))) {
  process.stderr.write(`${folder} has files that are no release: name an empty folder\n`)
  process.exit(2)
}
const release = await buildRelease({
  root: resolve(import.meta.dirname, '..'),
  folder,
  only,
  imageOptions: options['image-option'] ?? [],
})
const { commit, version, artifacts, missing, isDirty } = release
const say = (line: string): void => void process.stdout.write(`${line}\n`)
say(`memory-vault ${version}, commit ${commit}, in ${folder}`)
for (const { file, sha256 } of artifacts) say(`  ${sha256.slice(0, 12)}  ${file}`)
for (const { what, reason } of missing) say(`  not built: ${what}: ${reason}`)
if (isDirty) say('  changes that are not committed were left out')

const steps = publicationSteps(release, options.image)
if (options['dry-run']) {
  say('To publish:')
  for (const { command } of steps) say(`  ${command.join(' ')}`)
} else await publish(release, steps, say)
