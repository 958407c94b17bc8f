# {title}
# {text}
# needs:   {needs}
# kernels: {kernels}
# cost:    low
{columns}


def run(dump):
{body}
