import { readFileSync } from 'node:fs'
import t from 'tap'
import { version } from '#api/edge/version.ts'

const read = (file: string): string => readFileSync(file, 'utf8')

t.test('the service, the packages and the pages have one version', t => {
  const manifests = [
    'package-lock.json',
    'api/client/package.json',
    'api/client/n8n/package.json',
    'api/client/openclaw/package.json',
    'scripts/bridge/package.json',
    'scripts/hooks/package.json',
  ]
  for (const file of manifests) {
    t.equal((JSON.parse(read(file)) as { version: string }).version, version, file)
  }
  const places: [string, RegExp][] = [
    ['api/client/python/memory_vault/generated/operations.py', /^VERSION = "(.+)"$/m],
    ['scripts/deploy/kubernetes/kustomization.yaml', /newTag: '(.+)'/],
    ['scripts/deploy/kubernetes/Chart.yaml', /^version: (.+)$/m],
    ['scripts/deploy/kubernetes/Chart.yaml', /^appVersion: (.+)$/m],
    ['api/client/open-webui/memory_vault.py', /^version: (.+)$/m],
    ['api/client/dify/manifest.yaml', /^version: (.+)$/m],
    ['api/client/README.md', /memory-vault-client-(.+)\.tgz/],
    ['api/client/programs/programs.json', /memory-vault-client-(.+?)\.tgz/],
    ['scripts/deploy/README.md', /memory-vault:(\S+) \./],
    ['api/guides/connect-an-sdk.md', /memory-vault-client-(.+)\.tgz/],
    ['CHANGELOG.md', /^## \[(\d.+)\] - \d{4}-\d\d-\d\d$/m],
  ]
  for (const [file, pattern] of places) t.equal(pattern.exec(read(file))?.[1], version, file)
  t.end()
})
