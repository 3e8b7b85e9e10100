import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { staleFiles } from '#scripts/generate-contract.ts'
import { generatePythonClient } from '#scripts/generate-python-client.ts'

const root = join(import.meta.dirname, '../..')
const generated = generatePythonClient()
const [types, operations, client] = ['types', 'operations', 'async_vault'].map(name =>
  generated.get(`${name}.py`)!,
)

t.test('the committed client is what the contract says', async t => {
  const folder = join(root, 'api/client/python/memory_vault/generated')
  t.same(staleFiles(folder, generated), [], 'run `npm run python-client`')
})

t.test('a method for every endpoint, once', async t => {
  const methods = [...client!.matchAll(/^ {4}(?:async )?def (\w+)\(/gm)].map(([, name]) => name!)
  t.equal(methods.length, Object.keys(contractDocument.endpoints).length)
  t.equal(new Set(methods).size, methods.length)
  for (const { method, path } of Object.values(contractDocument.endpoints)) {
    t.ok(client!.includes(`\`${method} ${path}\``), `${method} ${path}`)
  }
})

t.test('arguments: the path, then what is required, then the rest; each once', async t => {
  const start = client!.indexOf('    async def search(')
  const search = client!.slice(start, client!.indexOf('    async def ', start + 8))
  t.match(search, 'self,\n        query: str,\n        *,\n        limit: int = 10,\n')
  t.match(search, 'tiers: Optional[Sequence[types.Tier]] = None,')
  t.equal(search.match(/^ +session_id: /gm)?.length, 1, 'in the body, the query and a header')
  t.match(search, ') -> types.SearchAnswer:')
  t.match(client!, 'from_: types.Moment', 'a keyword of Python')
  t.match(client!, 'expires_at: Union[', 'null is a value')
  t.match(client!, '**fields: Any,', 'what only the provider knows')
})

t.test('the transport knows which calls write and which take a key', async t => {
  const entry = (name: string): string =>
    new RegExp(`"${name}": Operation\\([^)]*\\)`).exec(operations!)?.[0] ?? ''
  t.match(entry('ingest'), 'writes=True')
  t.match(entry('ingest'), 'takes_key=True')
  t.match(entry('transfer'), 'writes=True', 'it needs to read one vault, and writes into another')
  t.notMatch(entry('search'), 'writes', 'a question')
  t.notMatch(entry('search'), 'takes_key', 'it changes nothing')
  t.match(entry('search'), 'reads=True', 'and may be sent again')
  t.notMatch(entry('embed'), 'takes_key')
  t.match(entry('upload'), 'body="lines"')
  t.match(entry('transcribe'), 'body="form"')
})

t.test('types: fields that may be missing, and names that are no names in Python', async t => {
  t.match(types!, /class _UploadLineRequired\(TypedDict\):\n {4}content: str\n/)
  t.match(types!, 'class UploadLine(_UploadLineRequired, total=False):')
  t.match(types!, /Tier = Literal\[1, 2, 3\]/)
  t.match(types!, /"from": /)
})

t.test('the command', async t => {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'package'))
  const run = (...options: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts/generate-python-client.ts'), ...options], {
      encoding: 'utf8',
      timeout: 60_000,
    })
  const to = ['--folder', join(folder, 'package')]
  t.match(run('--check', ...to), { status: 1, stderr: 'types.py, operations.py' })
  t.match(run(...to), { status: 0, stdout: 'wrote types.py, operations.py, async_vault.py' })
  t.match(run('--check', ...to), { status: 0, stdout: 'is up to date' })
  appendFileSync(join(folder, 'package/async_vault.py'), '# changed by hand\n')
  t.match(run('--check', ...to), { status: 1, stderr: /^async_vault\.py differ/ })
  t.match(readFileSync(join(folder, 'package/async_vault.py'), 'utf8'), 'changed by hand')
})
