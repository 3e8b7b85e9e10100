import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t from 'tap'
import { version } from '#api/edge/version.ts'
import { sha256Of } from '#scripts/publish/artifact.ts'
import { readLicences } from '#scripts/publish/licences.ts'
import { findPythons, noPython } from '#test/support/start/python.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { ingestText, searchTexts, startService } from '#test/support/start/npm-start.ts'
import { startPackageRegistry } from '#test/support/doubles/package-registry.ts'

// Builds the release of the commit that is checked out, twice, and installs what it has.

const root = process.cwd()
const ofTests = /^(?:npm_.*|NODE_OPTIONS|INIT_CWD)$/i
const terminal = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !ofTests.test(name)),
)
const run = (
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: object } = {},
) =>
  promisify(execFile)(command, args, {
    maxBuffer: 1 << 26,
    ...options,
    env: { ...terminal, ...options.env },
  })

/** A folder outside of the tree: npm takes that of a project above it for the one that is meant. */
function emptyFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'vault-released-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const folder = join(emptyFolder(), 'release')
const again = `${folder}-again`
const only = ['--only', 'source,npm,python,chart']
const build = (to: string, mask: string, env: object) => {
  const script = `umask ${mask}; exec "${process.execPath}" scripts/publish.ts --dry-run "$@"`
  return run('bash', ['-c', script, 'release', ...only, '--to', to], { cwd: root, env })
}
const { stdout: said } = await build(folder, '022', {})
const files = readdirSync(folder)
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
const sums = read('SHA256SUMS')
const pythons = await findPythons()
const npmFiles = files.filter(file => /^(?:memory-vault-(?!chart)|n8n).*\.tgz$/.test(file))

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)
const registry = await startPackageRegistry(t, folder)

t.test(
  'the same commit gives the same bytes, in another time zone, language and umask',
  async t => {
    await build(again, '077', { TZ: 'Asia/Tokyo', LANG: 'de_DE.UTF-8', SOURCE_DATE_EPOCH: '1' })
    t.equal(readFileSync(join(again, 'SHA256SUMS'), 'utf8'), sums)
  },
)

t.test('every file has its sum, and each artifact a bill of materials', async t => {
  const listed = new Map(
    sums
      .trim()
      .split('\n')
      .map(line => line.split('  ').reverse() as [string, string]),
  )
  t.same([...listed.keys()].toSorted(), files.filter(file => file !== 'SHA256SUMS').toSorted())
  for (const [file, sum] of listed) t.equal(sha256Of(readFileSync(join(folder, file))), sum, file)
  const artifacts = files.filter(file => /\.(?:tgz|whl|tar\.gz)$/.test(file))
  t.equal(npmFiles.length, 5)
  t.equal(artifacts.length, pythons.length > 0 ? 9 : 7, artifacts.join(' '))
  for (const file of artifacts) {
    const bill = JSON.parse(read(`${file}.cdx.json`)) as {
      metadata: { component: { hashes: object[] } }
      components: { 'bom-ref': string }[]
      dependencies: { ref: string; dependsOn: string[] }[]
    }
    t.same(bill.metadata.component.hashes, [{ alg: 'SHA-256', content: listed.get(file) }], file)
    const known = new Set([file, ...bill.components.map(one => one['bom-ref'])])
    for (const { ref, dependsOn } of bill.dependencies) {
      for (const one of [ref, ...dependsOn]) t.ok(known.has(one), `${file}: ${one}`)
    }
  }
  const service = JSON.parse(read(`memory-vault-${version}.tar.gz.cdx.json`)) as {
    components: { name: string; version: string }[]
  }
  const installed = readLicences(root).map(one => `${one.name} ${one.version}`)
  t.same(
    new Set(service.components.map(one => `${one.name} ${one.version}`)),
    new Set(installed),
    'of the service: all that is installed without development packages',
  )
})

t.test('provenance names commit, lock and tools; notes are those of the version', async t => {
  const { stdout: commit } = await run('git', ['rev-parse', 'HEAD'], { cwd: root })
  const { stdout: lock } = await run('git', ['show', 'HEAD:package-lock.json'], { cwd: root })
  const statement = JSON.parse(read(`provenance-${version}.intoto.json`)) as {
    subject: { name: string; digest: { sha256: string } }[]
    predicate: { buildDefinition: { resolvedDependencies: { name: string; digest?: object }[] } }
  }
  for (const { name, digest } of statement.subject)
    t.ok(sums.includes(`${digest.sha256}  ${name}\n`), name)
  const used = new Map(
    statement.predicate.buildDefinition.resolvedDependencies.map(one => [one.name, one.digest]),
  )
  t.same(used.get('source'), { gitCommit: commit.trim() })
  t.same(used.get('package-lock.json'), { sha256: sha256Of(lock) })
  for (const tool of ['node', 'npm', 'typescript', 'setuptools']) t.ok(used.has(tool), tool)
  t.match(read(`RELEASE-NOTES-${version}.md`), /^# Memory Vault \d[^]*### Added/)
  t.match(said, /npm publish [^]*gh release create v/)
})

t.test('licences: all allow use and passing on, and each text is there', async t => {
  const text = read(`THIRD-PARTY-LICENCES-${version}.txt`)
  const free =
    /^\(?(?:MIT|ISC|0BSD|BSD-[23]-Clause|Apache[- ]2\.0|BlueOak-1\.0\.0|Unlicense|CC0-1\.0|Python-2\.0|MIT-0)\b/
  for (const one of readLicences(root)) {
    t.match(one.licence, free, one.name)
    t.ok(text.includes(`${one.name} ${one.version} (${one.licence})`), one.name)
  }
})

t.test('npm: published to a registry, installed from it, first call', async t => {
  const settings = [`--registry=${registry}`, `--${registry.replace('http:', '')}/:_authToken=x`]
  for (const file of npmFiles) {
    await run('npm', ['publish', `./${file}`, '--access', 'public', ...settings], { cwd: folder })
  }
  const empty = emptyFolder()
  const names = ['memory-vault-client', 'memory-vault-mcp', 'memory-vault-hooks']
  names.push('memory-vault-openclaw', 'n8n-nodes-memory-vault')
  writeFileSync(join(empty, 'package.json'), '{}')
  const npmrc = { npm_config_cache: join(empty, '.cache'), npm_config_audit: 'false' }
  await run('npm', ['install', ...names, ...settings], { cwd: empty, env: npmrc })
  const program = `
    import { createVault } from 'memory-vault-client'
    const vault = createVault(process.env.BASE_URL, process.env.MEMORY_KEY)
    await vault.ingest({ messages: [{ role: 'user', content: 'Ada turns nine in May.' }], wait: true })
    const { memories } = await vault.search({ query: 'how old is Ada?', limit: 1 })
    console.log(memories[0].content)
    const { default: plugin } = await import('memory-vault-openclaw/dist/client/openclaw/plugin.js')
    const { default: node } = await import('n8n-nodes-memory-vault/dist/MemoryVault.node.js')
    console.log(plugin.id, typeof node.MemoryVault)`
  const env = { BASE_URL: base, MEMORY_KEY: key }
  const args = ['--input-type=module', '--eval', program]
  const { stdout } = await run(process.execPath, args, { cwd: empty, env })
  const { stdout: root } = await run('npm', ['prefix'], { cwd: empty })
  t.equal(realpathSync(root.trim()), realpathSync(empty), 'it was installed here')
  t.equal(stdout, 'Ada turns nine in May.\nmemory-vault function\n')

  const bin = join(empty, 'node_modules/.bin')
  const hooks = await run(join(bin, 'memory-vault-hooks'), ['--help'], { cwd: empty })
  t.match(hooks.stdout, 'Usage: memory-vault-hooks')
  const client = new Client({ name: 'release', version: '1' })
  t.teardown(() => client.close())
  await client.connect(
    new StdioClientTransport({
      command: join(bin, 'memory-vault-mcp'),
      args: ['--url', base],
      env: { PATH: process.env.PATH!, MEMORY_VAULT_KEY: key },
    }),
  )
  const found = await client.callTool({ name: 'search', arguments: { query: 'Ada', limit: 1 } })
  t.match(JSON.stringify(found.structuredContent), 'Ada turns nine in May.')
})

t.test(
  'pip: wheel and source archive, first call',
  { skip: pythons.length === 0 && noPython },
  async t => {
    const empty = emptyFolder()
    const [python] = pythons
    await run(python!.command, ['-m', 'venv', '.venv'], { cwd: empty })
    const own = join(empty, '.venv/bin/python')
    const pip = ['-m', 'pip', '--disable-pip-version-check', 'install', '--quiet']
    const index = ['--index-url', `${registry}/simple/`]
    await run(own, [...pip, ...index, `memory-vault-client==${version}`], { cwd: empty })
    const program = `
import os
from memory_vault import Vault

with Vault(os.environ["BASE_URL"], os.environ["MEMORY_KEY"]) as vault:
    vault.ingest(messages=[{"role": "user", "content": "The kiln is fired on Fridays."}], wait=True)
    print(vault.search(query="when is the kiln fired?", limit=1)["memories"][0]["content"])
`
    const env = { BASE_URL: base, MEMORY_KEY: key }
    const { stdout } = await run(own, ['-c', program], { cwd: empty, env })
    t.equal(stdout, 'The kiln is fired on Fridays.\n')
    const { stdout: inside } = await run('tar', [
      '-tzf',
      join(folder, `memory_vault_client-${version}.tar.gz`),
    ])
    const { stdout: wheel } = await run(own, [
      '-c',
      'import sys, zipfile; print("\\n".join(zipfile.ZipFile(sys.argv[1]).namelist()))',
      join(folder, `memory_vault_client-${version}-py3-none-any.whl`),
    ])
    const sources = (list: string): string[] =>
      [...list.matchAll(/^(?:memory_vault_client-[^/]+\/)?(memory_vault\/.*\.(?:py|typed))$/gm)]
        .map(one => one[1]!)
        .toSorted()
    t.same(sources(inside), sources(wheel), 'the archive has every file of the wheel')
  },
)

t.test('source: all files of the commit; npm start remembers', async t => {
  const empty = emptyFolder()
  await run('tar', ['-xzf', join(folder, `memory-vault-${version}.tar.gz`), '-C', empty])
  const tree = join(empty, `memory-vault-${version}`)
  const { stdout } = await run('git', ['ls-tree', '-r', '--name-only', '-z', 'HEAD'], { cwd: root })
  const there = readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter(entry => !entry.isDirectory())
    .map(entry => join(entry.parentPath, entry.name).slice(tree.length + 1))
  t.same(there.toSorted(), stdout.split('\0').filter(Boolean).toSorted())
  // What `npm ci` would install: the lock is the same.
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  const data = join(empty, 'data')
  mkdirSync(data)
  const command = ['npm', 'start', '--prefix', tree, '--no-update-notifier'] as const
  const service = await startService(t, data, {}, command)
  t.equal((await ingestText(service.client, 'The kite is in the attic.')).status, 200)
  t.same(await searchTexts(service.client, 'where is the kite?'), ['The kite is in the attic.'])
  service.child.kill('SIGTERM')
  await service.exit
})

t.test('nothing is published from a commit without its tag', async t => {
  const args = ['scripts/publish.ts', '--only', 'chart', '--to', join(emptyFolder(), 'out')]
  const refused = run(process.execPath, args, { cwd: root })
  await t.rejects(refused, { message: /Nothing was published: [^]*no tag v/ })
})

t.test('a folder with other files is not replaced', async t => {
  const to = t.testdir({ 'letter.txt': 'keep me' })
  const args = ['scripts/publish.ts', '--dry-run', '--only', 'chart', '--to', to]
  await t.rejects(run(process.execPath, args, { cwd: root }), { message: /no release/ })
  t.equal(readFileSync(join(to, 'letter.txt'), 'utf8'), 'keep me')
})
