import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Built } from '#scripts/publish/artifact.ts'
import { runTool, type Workshop } from '#scripts/publish/source.ts'

/** Outside of the tree, kept between runs. */
const cache = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'memory-vault',
  'release',
)

export const python = process.env.PYTHON ?? 'python3'

/**
 * Wheel and source archive of the client for Python, by the version of setuptools that is pinned: other versions write other
 * bytes. It is fetched once.
 */
export async function buildPythonPackage({ source, folder }: Workshop): Promise<Built> {
  const { tree, epoch } = source
  const place = join(tree, 'api/client/python')
  try {
    const tools = await fetchTools(join(tree, 'scripts/publish/requirements.txt'))
    copyFileSync(join(tree, 'LICENSE'), join(place, 'LICENSE'))
    const before = new Set(readdirSync(folder))
    const env = { PYTHONPATH: tools, PYTHONDONTWRITEBYTECODE: '1', SOURCE_DATE_EPOCH: `${epoch}` }
    const script = join(tree, 'scripts/publish/python_archives.py')
    await runTool(python, [script, folder], { cwd: place, env })
    const made = readdirSync(folder).filter(file => !before.has(file))
    return { files: made.map(file => join(folder, file)) }
  } catch (error) {
    const reason = (error as Error).message.trim().split('\n').at(-1)!
    return { files: [], missing: [{ what: 'wheel and source archive for Python', reason }] }
  }
}

/** @returns the folder that has setuptools as it is pinned */
async function fetchTools(requirements: string): Promise<string> {
  const pinned = readFileSync(requirements, 'utf8').split(' ', 1)[0]!
  const folder = join(cache, pinned)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const partial = `${folder}.${process.pid}`
  const how = ['--quiet', '--no-deps', '--require-hashes', '--disable-pip-version-check']
  const args = ['-m', 'pip', 'install', ...how, '--target', partial, '-r', requirements]
  await runTool(python, args, { cwd: cache, env: { PIP_ROOT_USER_ACTION: 'ignore' } })
  renameSync(partial, folder)
  return folder
}
