import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { cleanEnvironment } from '#scripts/services/process.ts'
import { noBrowser } from '#test/console/browser.ts'

// Starts a service with two databases, and a browser.

const script = fileURLToPath(new URL('../../scripts/picture.ts', import.meta.url))

/** Width and height of a PNG: the first fields of its header. */
function sizeOf(file: string | URL): [width: number, height: number, kilobytes: number] {
  const bytes = readFileSync(file)
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20), Math.ceil(bytes.length / 1000)]
}

t.test('the picture of the first page is taken by its script', { skip: noBrowser }, async t => {
  const out = join(t.testdir(), 'picture.png')
  await promisify(execFile)(process.execPath, [script, '--out', out], { env: cleanEnvironment() })
  for (const file of [out, new URL('../../api/console/picture.png', import.meta.url)]) {
    const [width, height, kilobytes] = sizeOf(file)
    t.same([width, height], [1200, 700])
    t.ok(kilobytes < 200, `${kilobytes} kB`)
  }
})
