import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))

/** `env`, because the test runner puts its loaders into every Node process it sees start. */
const plain = (command: string, args: string[], cwd = root) =>
  run('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd })

export type Manifest = {
  name: string
  version: string
  bin?: Record<string, string>
  dependencies?: object
  engines: { node: string }
}

/**
 * Builds a package of this tree, packs it with npm and puts what is in the archive where npm would.
 *
 * @param source its folder, such as `api/client`
 * @param modules the folder `node_modules` to install into
 */
export async function installPackage(source: string, modules: string): Promise<Manifest> {
  const manifest = JSON.parse(readFileSync(join(root, source, 'package.json'), 'utf8')) as Manifest
  const built = mkdtempSync(join(tmpdir(), 'vault-package-'))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  await plain(process.execPath, [tsc, '-p', source, '--outDir', join(built, 'dist')])
  copyFileSync(join(root, source, 'package.json'), join(built, 'package.json'))
  await plain('npm', ['pack', '--ignore-scripts', '--silent', '--offline'], built)
  const target = join(modules, manifest.name)
  mkdirSync(target, { recursive: true })
  const archive = join(built, `${manifest.name}-${manifest.version}.tgz`)
  await plain('tar', ['-xzf', archive, '-C', target, '--strip-components=1'])
  rmSync(built, { recursive: true })
  return manifest
}

/** A Node that is older than the project's, where this machine has one; `OLD_NODE` names another. */
export async function findOldNode(): Promise<string | undefined> {
  const places = [process.env.OLD_NODE, '/usr/bin/node', '/usr/local/bin/node']
  for (const place of places.filter(place => place !== undefined && existsSync(place))) {
    const { stdout } = await plain(place!, ['--version'])
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) < 24) return place
  }
  return undefined
}
