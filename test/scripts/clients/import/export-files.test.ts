import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import type { ExportFile } from '#api/import/export-files.ts'
import t from 'tap'
import { listFilesAt } from '#scripts/clients/import/export-files.ts'
import { zipOf } from '#test/support/samples/foreign-exports.ts'

const dir = t.testdir({
  folder: { 'b.json': 'B', sub: { 'a.json': 'A' } },
  'plain.json': 'P',
})

async function textOf(file: ExportFile): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of file.open()) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
const read = async (path: string): Promise<[string, string][]> => {
  const files = await listFilesAt(join(dir, path))
  return Promise.all(files.map(async file => [file.name, await textOf(file)] as [string, string]))
}

t.test('a file, a folder and a zip archive have the same form', async t => {
  t.same(await read('plain.json'), [['plain.json', 'P']])
  t.same(await read('folder'), [
    ['b.json', 'B'],
    ['sub/a.json', 'A'],
  ])
  const long = 'long '.repeat(100_000)
  const archive = zipOf({
    'x/long.json': long,
    'a.bin': 'stored',
    'empty.json': '',
    'grüße.md': 'G',
  })
  writeFileSync(join(dir, 'a.zip'), archive)
  const names = ['a.bin', 'empty.json', 'grüße.md', 'x/long.json']
  t.same(
    (await read('a.zip')).map(([name, text]) => [name, text.length]),
    names.map((name, index) => [name, [6, 0, 1, long.length][index]]),
  )
  t.same((await read('a.zip')).at(-1)![1], long)
})

t.test('files that Codex has compressed are read, once where both forms are there', async t => {
  const folder = { 'rollout-1.jsonl.zst': 'one\n', 'rollout-2.jsonl.zst': 'two\n' }
  mkdirSync(join(dir, 'codex/archived_sessions'), { recursive: true })
  for (const [name, text] of Object.entries(folder))
    writeFileSync(join(dir, 'codex/archived_sessions', name), zstdCompressSync(text))
  writeFileSync(join(dir, 'codex/archived_sessions/rollout-2.jsonl'), 'two\n')
  t.same(await read('codex'), [
    ['archived_sessions/rollout-1.jsonl', 'one\n'],
    ['archived_sessions/rollout-2.jsonl', 'two\n'],
  ])
  t.same(await read('codex/archived_sessions/rollout-1.jsonl.zst'), [['rollout-1.jsonl', 'one\n']])
  writeFileSync(join(dir, 'rollout-3.jsonl.zst'), 'no zstd')
  await t.rejects(read('rollout-3.jsonl.zst'), { message: /rollout-3\.jsonl\.zst cannot be decom/ })
})

t.test('what macOS puts beside files is no part of an export', async t => {
  const files = { 'mem0/a.json': '{}', '__MACOSX/mem0/._a.json': '\0', 'mem0/._a.json': '\0' }
  writeFileSync(join(dir, 'mac.zip'), zipOf(files))
  t.same(await read('mac.zip'), [['mem0/a.json', '{}']])
})

t.test('archives within archives and several in a folder are opened', async t => {
  const portal = zipOf({ 'conversations.json': '[]', 'more.zip': zipOf({ 'a.json': 'A' }) })
  const name = 'User Online Activity/Conversations__x-chatgpt-0001.zip'
  const files = { [name]: portal, 'not-one.zip': 'plain', '__MACOSX/._x.zip': portal }
  writeFileSync(join(dir, 'portal.zip'), zipOf(files))
  const inner: [string, string][] = [
    [`${name}/conversations.json`, '[]'],
    [`${name}/more.zip/a.json`, 'A'],
  ]
  t.same(await read('portal.zip'), [...inner, ['not-one.zip', 'plain']])
  mkdirSync(join(dir, 'takeout'))
  writeFileSync(join(dir, 'takeout/001.zip'), zipOf({ 'a.json': 'A' }))
  writeFileSync(join(dir, 'takeout/002.ZIP'), zipOf({ 'a.json': 'B' }))
  t.same(await read('takeout'), [
    ['001.zip/a.json', 'A'],
    ['002.ZIP/a.json', 'B'],
  ])
})

t.test('an archive of another program, also with wide fields', async t => {
  const program = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('conversations.json', '[' + '1,' * 50000 + '2]')
    with z.open('wide.json', 'w', force_zip64=True) as f: f.write(b'{}')
    z.comment = b'a comment'`
  try {
    execFileSync('python3', ['-c', program, join(dir, 'python.zip')])
  } catch {
    t.pass('skipped: this machine has no python3')
    return
  }
  const [[, first], [, wide]] = (await read('python.zip')) as [[string, string], [string, string]]
  t.equal(first.length, 100_003)
  t.equal(wide, '{}')
})

t.test('a damaged archive is refused', async t => {
  const archive = zipOf({ 'a.json': 'x'.repeat(1000) })
  const cases: [Buffer, RegExp][] = [
    [archive.subarray(0, 40), /no zip archive that can be read: End of central directory/],
    [Buffer.concat([archive.subarray(0, 20), archive.subarray(25)]), /bad\.zip is no zip archive/],
    [Buffer.from(archive).fill(0xff, 36, 40), /can be read: a\.json: /],
  ]
  for (const [bytes, message] of cases) {
    writeFileSync(join(dir, 'bad.zip'), bytes)
    await t.rejects(read('bad.zip'), { reason: 'invalid', message })
  }
})

t.test(
  'an archive within an archive that grows to many times its size is not unpacked',
  async t => {
    const grown = zipOf({ 'a.bin': '[]'.padEnd(20 * 1024 * 1024) })
    writeFileSync(join(dir, 'grows.zip'), zipOf({ 'a.json': '[]', 'inner.zip': grown }))
    await t.rejects(read('grows.zip'), {
      reason: 'invalid',
      message: /^inner\.zip would be 2\d{7} bytes/,
    })
    const texts = Array.from({ length: 500_000 }, (_, n) => `{"number":${n},"text":"a memory"}`)
    const stored = zipOf({ 'a.bin': `[${texts.join(',')}]` })
    writeFileSync(join(dir, 'texts.zip'), zipOf({ 'inner.zip': stored }))
    t.equal((await read('texts.zip')).length, 1)
  },
)
