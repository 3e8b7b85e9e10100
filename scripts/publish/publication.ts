import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { posix } from 'node:path'
import type { Release } from '#scripts/publish/build-release.ts'
import { python } from '#scripts/publish/python-package.ts'
import { runTool } from '#scripts/publish/source.ts'

/** A command that publishes, run in the folder of the release. */
export type PublicationStep = { command: string[] }

/** @param image where image and chart are pushed to; without it they have no command */
export function publicationSteps(
  { version, artifacts }: Release,
  image: string | undefined,
): PublicationStep[] {
  const filesOf = (part: string): string[] =>
    artifacts.filter(one => one.part === part).map(({ file }) => file)
  const commands = filesOf('npm').map(file => ['npm', 'publish', `./${file}`, '--access', 'public'])
  const packages = filesOf('python')
  if (packages.length > 0) commands.push([python, '-m', 'twine', 'upload', ...packages])
  const images = filesOf('image')
  if (image && images.length > 0) {
    const list = `${image}:${version}`
    commands.push(['buildah', 'manifest', 'create', list])
    for (const file of images) {
      // buildah reads an archive that is not compressed.
      commands.push(['gunzip', '--keep', '--force', file])
      const archive = `docker-archive:${file.replace(/\.gz$/, '')}`
      commands.push(['buildah', 'manifest', 'add', list, archive])
    }
    commands.push(['buildah', 'manifest', 'push', '--all', list, `docker://${list}`])
  }
  const charts = filesOf('chart')
  if (image) {
    for (const file of charts) {
      commands.push(['helm', 'push', file, `oci://${posix.dirname(image)}/charts`])
    }
  }
  const notes = `RELEASE-NOTES-${version}.md`
  const all = artifacts.map(({ file }) => file)
  commands.push(['gh', 'release', 'create', `v${version}`, '--notes-file', notes, ...all])
  return commands.map(command => ({ command }))
}

/**
 * Runs the steps one after the other, up to the first that fails.
 *
 * @throws for a release that is not of a tagged commit, or lacks a part that was asked for
 */
export async function publish(
  { root, folder, version, commit, isDirty, missing }: Release,
  steps: readonly PublicationStep[],
  say: (line: string) => void,
): Promise<void> {
  const faults = missing.map(({ what }) => `${what} is not built: leave it out with --only`)
  if (isDirty) faults.push('there are changes that are not committed')
  const tags = await runTool('git', ['tag', '--points-at', commit], { cwd: root })
  if (!tags.split('\n').includes(`v${version}`)) faults.push(`the commit has no tag v${version}`)
  if (faults.length > 0) {
    process.stderr.write(`Nothing was published: ${faults.join('; ')}.\n`)
    process.exitCode = 1
    return
  }
  for (const { command } of steps) {
    say(`$ ${command.join(' ')}`)
    const [program, ...args] = command
    const child = spawn(program!, args, { cwd: folder, stdio: 'inherit' })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code === 0) continue
    process.stderr.write(`This step failed; those before it are done, those after it are not.\n`)
    process.exitCode = 1
    return
  }
}
