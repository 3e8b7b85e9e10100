import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { sha256Of, type Built, type MissingArtifact } from '#scripts/publish/artifact.ts'
import { runTool, type Workshop } from '#scripts/publish/source.ts'

/** Architectures by the names of images, with the machine that the head of an ELF file names. */
export const architectures = { amd64: 0x3e, arm64: 0xb7 } as const
type Architecture = keyof typeof architectures

/** A package of the system in an image, and the file of the image. */
export type SystemPackage = { image: string; name: string; version: string; architecture: string }

/**
 * Builds the image of each architecture with buildah, into an archive that docker and podman load. No program of another
 * architecture runs for it: packages are the same on both, and the last stage copies alone.
 *
 * @returns also the packages of each image's system, for its bill of materials
 */
export async function buildImages(
  workshop: Workshop,
): Promise<Required<Built> & { system: SystemPackage[] }> {
  const built = { files: [] as string[], missing: [] as MissingArtifact[] }
  const system: SystemPackage[] = []
  for (const architecture of Object.keys(architectures) as Architecture[]) {
    try {
      const file = await buildImage(workshop, architecture, system)
      built.files.push(file)
    } catch (error) {
      const said = (error as Error).message.trim().split('\n')
      const reason = said.findLast(line => /error|Error/.test(line)) ?? said.at(-1)!
      built.missing.push({ what: `image for ${architecture}`, reason: reason.slice(0, 300) })
    }
  }
  return { ...built, system }
}

async function buildImage(
  { source, work, folder, imageOptions, builderOptions }: Workshop,
  architecture: Architecture,
  system: SystemPackage[],
): Promise<string> {
  const { tree, version, epoch } = source
  const isolation = process.env.BUILDAH_ISOLATION ?? 'chroot'
  const buildah = (...args: string[]): Promise<string> =>
    runTool('buildah', [...builderOptions, ...args], {
      cwd: tree,
      env: { BUILDAH_ISOLATION: isolation },
    })
  const name = `memory-vault-image-${version}-linux-${architecture}`
  const tag = `localhost/memory-vault:${version}-${architecture}`
  const deploy = 'scripts/deploy'
  const files = ['-f', `${deploy}/Dockerfile`, '--ignorefile', `${deploy}/Dockerfile.dockerignore`]
  const how = [
    '--timestamp',
    String(epoch),
    '--platform',
    `linux/${architecture}`,
    '--format',
    'docker',
  ]
  await buildah('bud', ...how, ...files, ...imageOptions, '--tag', tag, tree)
  const container = await buildah('from', '--pull-never', tag)
  try {
    const root = await buildah('mount', container)
    checkMachine(join(root, 'usr/local/bin/node'), architecture)
    system.push(...systemPackages(root, `${name}.tar.gz`))
  } finally {
    await buildah('rm', container)
  }
  const tar = join(folder, `${name}.tar`)
  await buildah('push', '--format', 'v2s2', tag, `docker-archive:${tar}:memory-vault:${version}`)
  await settleArchive(tar, work, epoch)
  await runTool('gzip', ['--no-name', tar], { cwd: folder })
  return `${tar}.gz`
}

/** Takes what names the container of a build out of its archive: the same source gives the same bytes. */
async function settleArchive(tar: string, work: string, epoch: number): Promise<void> {
  const folder = mkdtempSync(join(work, 'archive-'))
  const read = <Content>(name: string): Content =>
    JSON.parse(readFileSync(join(folder, name), 'utf8')) as Content
  await runTool('tar', ['-xf', tar, '-C', folder], { cwd: work })
  type Image = { Config: string; RepoTags: string[]; Layers: string[] }
  const [{ Layers, ...image }] = read<[Image]>('manifest.json')
  // The name that it was pushed by: the builder adds those of its own store.
  const RepoTags = image.RepoTags.slice(0, 1)
  const settings = read<Record<string, object>>(image.Config)
  delete settings.container
  delete settings.container_config
  const text = JSON.stringify({ ...settings, config: { ...settings.config, Hostname: '' } })
  const Config = `${sha256Of(Buffer.from(text))}.json`
  writeFileSync(join(folder, Config), text)
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify([{ Config, RepoTags, Layers }]))
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=644', `--mtime=@${epoch}`]
  const files = ['manifest.json', Config, ...Layers]
  await runTool('tar', ['-cf', tar, '--format=gnu', ...owner, '-C', folder, ...files], {
    cwd: work,
  })
  rmSync(folder, { recursive: true })
}

/** A builder without the base of an architecture may take that of its own. */
function checkMachine(program: string, architecture: Architecture): void {
  const head = Buffer.alloc(20)
  const file = openSync(program, 'r')
  readSync(file, head)
  closeSync(file)
  const machine = head.readUInt16LE(18)
  if (machine !== architectures[architecture]) {
    throw new Error('error: the base image that is here is of another architecture')
  }
}

function systemPackages(root: string, image: string): SystemPackage[] {
  const at = join(root, 'var/lib/dpkg')
  // Packages of which the image has files alone have a record of their own.
  const single = join(at, 'status.d')
  const records = existsSync(single) ? readdirSync(single).map(name => join(single, name)) : []
  return [join(at, 'status'), ...records]
    .flatMap(file => readFileSync(file, 'utf8').split('\n\n'))
    .map(text => {
      const field = (name: string): string =>
        new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? ''
      return {
        image,
        name: field('Package'),
        version: field('Version'),
        architecture: field('Architecture'),
      }
    })
    .filter(({ name }) => name !== '')
}
