import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

export type DockerInstruction = { stage: number; name: string; value: string }

/** The instructions of a Dockerfile, lines that end in a backslash joined. */
export function parseDockerfile(text: string): DockerInstruction[] {
  let stage = -1
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => {
      const [, name = '', value = ''] = /^(\w+) (.*)$/.exec(line) ?? []
      if (name === 'FROM') stage++
      return { stage, name, value }
    })
}

/** The sources and the destination of a `COPY` from the build context; none for one from another stage. */
export function copiedPaths({ name, value }: DockerInstruction): string[] {
  if (name !== 'COPY' || value.startsWith('--from')) return []
  return value.split(' ')
}

/** Lays out what the last stage of the image holds in a directory, production packages as links. */
export function layOutImage(instructions: readonly DockerInstruction[], directory: string): void {
  const last = instructions.at(-1)!.stage
  for (const instruction of instructions.filter(({ stage }) => stage === last)) {
    const paths = copiedPaths(instruction)
    const to = paths.pop()
    for (const from of paths) {
      const target = to!.endsWith('/') ? join(to!, from) : to!
      cpSync(join(root, from), join(directory, target), { recursive: true })
    }
  }
  linkProductionPackages(join(directory, 'node_modules'))
}

type LockedPackage = { dev?: boolean; devOptional?: boolean; link?: boolean }

function linkProductionPackages(directory: string): void {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  for (const [path, { dev, devOptional, link }] of Object.entries(lock.packages)) {
    const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? []
    if (!name || dev || devOptional || link || !existsSync(join(root, path))) continue
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    symlinkSync(join(root, path), join(directory, name))
  }
}
