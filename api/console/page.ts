/**
 * The console may load its own files only: no inline script or style, no form that is submitted, and no
 * text that becomes markup, since `require-trusted-types-for` makes `innerHTML` throw.
 */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"

/** @param preloadPaths modules that the first view needs, by path */
export const consolePage = (preloadPaths: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Memory Vault</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/style.css">
${preloadPaths.map(path => `<link rel="modulepreload" href="${path}">`).join('\n')}
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript.</noscript>
<script type="module" src="/console/app/main.ts"></script>
</body>
</html>
`
