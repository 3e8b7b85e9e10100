import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { sha256Of } from '#scripts/publish/artifact.ts'

const outputBytesMax = 1 << 28

/** The commit that is published, and its files in a folder of their own. */
export type Source = {
  /** The checkout, whose installed packages build it. */
  root: string
  /** Where the files of the commit are. */
  tree: string
  version: string
  commit: string
  /** The commit's time in seconds, which everything that is built has. */
  epoch: number
  /** SHA-256 of package-lock.json, in hex. */
  lockDigest: string
  /** Whether the checkout has changes that are not committed. */
  isDirty: boolean
}

/** Where a part is built, and with what. */
export type Workshop = {
  source: Source
  work: string
  folder: string
  /** Options of `buildah bud`, such as whether the base is pulled. */
  imageOptions: readonly string[]
  /** Options of buildah itself, such as where it keeps images. */
  builderOptions: readonly string[]
}

/**
 * Runs a program as a build does: in UTC, in the C locale and without what the caller gave to Node.
 *
 * @returns what it printed
 */
export async function runTool(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<string> {
  const env: NodeJS.ProcessEnv = { ...process.env, ...options.env, LC_ALL: 'C', TZ: 'UTC' }
  delete env.NODE_OPTIONS
  const limits = { cwd: options.cwd, env, maxBuffer: outputBytesMax }
  return (await promisify(execFile)(command, args, limits)).stdout.trim()
}

/** Lays out the files of the commit that is checked out, with the packages of the checkout beside them. */
export async function layOutSource(root: string, work: string): Promise<Source> {
  const git = (...args: string[]): Promise<string> => runTool('git', args, { cwd: root })
  const [commit, epoch, status] = await Promise.all([
    git('rev-parse', 'HEAD'),
    git('show', '--no-patch', '--format=%ct', 'HEAD'),
    git('status', '--porcelain'),
  ])
  const tree = join(work, 'memory-vault')
  mkdirSync(tree, { recursive: true })
  const archive = join(work, 'source.tar')
  await git('-c', 'tar.umask=0022', 'archive', '--output', archive, commit)
  await runTool('tar', ['-xf', archive, '-C', tree], { cwd: work })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  const { version } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as {
    version: string
  }
  return {
    root,
    tree,
    version,
    commit,
    epoch: Number(epoch),
    lockDigest: sha256Of(readFileSync(join(tree, 'package-lock.json'))),
    isDirty: status !== '',
  }
}

/**
 * Writes files of the commit as an archive, below a folder of a given name.
 *
 * @param from a folder of the tree, or the empty text for all of it
 */
export async function archiveSource(
  { root, commit }: Source,
  from: string,
  name: string,
  file: string,
): Promise<void> {
  const tar = `${file}.tar`
  const args = ['-c', 'tar.umask=0022', 'archive', `--prefix=${name}/`, '--output', tar, commit]
  await runTool('git', args, { cwd: join(root, from) })
  writeFileSync(file, gzipSync(readFileSync(tar), { level: 9 }))
  await runTool('rm', [tar], { cwd: root })
}
