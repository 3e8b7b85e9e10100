import { execFile, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse as parseYaml } from 'tap-yaml'

/** An object of Kubernetes. */
export type KubernetesObject = {
  kind: string
  metadata: { name: string } & Record<string, unknown>
} & Record<string, unknown>

/** Files of a folder of manifests that are no objects: of kustomize and of Helm. */
const others = new Set(['kustomization.yaml', 'Chart.yaml', 'values.yaml'])

/** The objects of the manifests of a folder, in the order of the files. */
export const readKubernetes = (folder: string): KubernetesObject[] =>
  readdirSync(folder)
    .filter(file => file.endsWith('.yaml') && !others.has(file))
    .flatMap(file => parseObjects(readFileSync(join(folder, file), 'utf8')))

/** The objects of a stream of YAML. */
const parseObjects = (text: string): KubernetesObject[] =>
  text
    .split(/^---$/m)
    .map(part => parseYaml(part) as KubernetesObject | null)
    .filter(part => part !== null)

/** The real `helm`: that of `HELM`, of the path, or where Go installs it. */
export function findHelm(): string | undefined {
  const places = [process.env.HELM, 'helm', join(homedir(), 'go/bin/helm')]
  return places.find(place => place && spawnSync(place, ['version', '--short']).error === undefined)
}

export const noHelm = 'helm is not installed: go install helm.sh/helm/v3/cmd/helm@v3.22.0'

/**
 * Renders a chart as for a recent cluster.
 *
 * @throws with what helm said
 */
export async function renderChart(
  helm: string,
  chart: string,
  args: readonly string[] = [],
): Promise<KubernetesObject[]> {
  const how = ['template', 'vault', chart, '--kube-version', '1.34.0', ...args]
  return parseObjects((await promisify(execFile)(helm, how)).stdout)
}
