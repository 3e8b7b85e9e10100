import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

type Published = {
  name: string
  versions: Record<string, object>
  'dist-tags': Record<string, string>
  _attachments: Record<string, { data: string }>
}

/**
 * A registry of packages at this machine: npm publishes to it and installs from it, pip installs what lies in a folder by the
 * simple index (PEP 503). It has nothing that was not given to it.
 *
 * @param folder of wheels and source archives
 */
export async function startPackageRegistry(t: Test, folder: string): Promise<string> {
  const packages = new Map<string, Published>()
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!)
    const answer = (status: number, body: string | Buffer, type = 'application/json'): void => {
      response.writeHead(status, { 'content-type': type }).end(body)
    }
    const [, name = '', file] = /^\/([^/]+)(?:\/-\/([^/]+))?$/.exec(path) ?? []
    const found = packages.get(name)
    if (request.method === 'PUT') {
      void readBody(request).then(body => {
        const published = JSON.parse(body) as Published
        packages.set(published.name, published)
        answer(201, '{}')
      })
    } else if (path === '/simple/memory-vault-client/') {
      const links = readdirSync(folder)
        .filter(one => one.startsWith('memory_vault_client-') && /\.(?:whl|tar\.gz)$/.test(one))
        .map(one => `<a href="/files/${one}">${one}</a>`)
      answer(200, `<!doctype html><body>${links.join('\n')}</body>`, 'text/html')
    } else if (path.startsWith('/files/')) {
      answer(200, readFileSync(join(folder, path.slice('/files/'.length))), 'application/zip')
    } else if (found && file) {
      const { data } = found._attachments[file]!
      answer(200, Buffer.from(data, 'base64'), 'application/octet-stream')
    } else if (found) answer(200, JSON.stringify({ ...found, _attachments: undefined }))
    else answer(404, '{}')
  })
  return listen(t, server)
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
