/** The program that fetches a kernel of a workload from this service and can be pasted as it is. */
export function snippet(service: string, script: string, target: string): string {
  return [
    "import loopwright as lw",
    "",
    'SCRIPT = """',
    script.trimEnd().replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"'),
    '"""',
    "",
    `with lw.Client(${JSON.stringify(service)}) as client:`,
    `    kernel = client.kernel(SCRIPT, target=${JSON.stringify(target)})`,
    "",
  ].join("\n");
}
